import { homedir, hostname } from 'node:os';
import * as z from 'zod';
import { batchesOfClusters, type CredentialStatus } from '../index.ts';
import { GryphusError } from '../errors.ts';
import { defined } from './defined.ts';
import { dagsOf, oneDag, pictureOf, runsOf } from './dags.ts';
import { eventLine } from './event-line.ts';
import { filterOf } from './filter.ts';
import { nameOf } from './job-table.ts';
import { oneJob, userLog } from './one-job.ts';
import { credentialsOf, needs, overview } from './overview.ts';
import { idOf } from './plan.ts';
import { poolOf } from './pool.ts';
import { PROGRAM_ROUTES } from './program-routes.ts';
import { type Route, route, writtenRoute } from './route.ts';
import { haystack, ROW_ATTRIBUTES, rowOf } from './row.ts';
import * as s from './schemas.ts';
import { shownRow } from './shown-row.ts';
import { measuredSites } from './sites.ts';
import { streamChanges } from './stream.ts';
import { followOutput, talkLogin } from './talk.ts';
import type { Web } from './web.ts';

const PAGE = z.strictObject(s.PAGE);
/** Unix seconds. */
const SINCE = z.strictObject({ after: z.coerce.number().nonnegative().default(0) });
const STEPS = z.strictObject({
  around: z.string().optional(),
  steps: z.coerce.number().int().min(1).max(10).default(1),
});
/** The history is read from its end, up to here. */
const MOST_HISTORY = 5000;

const JOBS: readonly Route[] = [
  route({
    method: 'GET',
    path: '/jobs',
    summary: 'Rows of the table of jobs: those that fit the box, sorted, from `offset`.',
    query: s.TABLE_QUERY,
    answer: s.TABLE,
    run: async ({ web, query }) => {
      if (query.where === 'history') return history(web, query);
      const { found, all, rows } = await web.table.page(query);
      return { found, all, rows: rows.map(shownRow), more: false };
    },
  }),
  route({
    method: 'GET',
    path: '/batches',
    summary: 'The jobs by batch, as `gryphus q` folds them; the newest first.',
    query: PAGE,
    answer: s.BATCHES,
    run: async ({ web, query: { offset, limit } }) => {
      const batches = batchesOfClusters(await web.gryphus.clusters()).reverse();
      const dags = new Set((await dagsOf(web)).map(({ cluster }) => cluster));
      return {
        all: batches.length,
        batches: batches
          .slice(offset, offset + limit)
          .map(({ owner, name, submitted, done, total, running, idle, held, first, last, counted }) => {
            const dag = [...counted].find((cluster) => dags.has(cluster));
            return {
              owner,
              name,
              submitted,
              done,
              total,
              running,
              idle,
              held,
              first: nameOf(first),
              last: nameOf(last),
              clusters: [...counted],
              ...(dag === undefined ? {} : { dag }),
            };
          }),
      };
    },
  }),
  route({
    method: 'POST',
    path: '/jobs/plan',
    summary: 'What an action would do to these jobs. Nothing happens before `act` is given the plan.',
    body: s.PLAN_ASKED,
    answer: s.PLAN,
    run: ({ web, body }) => web.plans.plan(body),
  }),
  route({
    method: 'POST',
    path: '/jobs/act',
    summary: 'Carries a plan out, once.',
    body: s.ACT,
    answer: s.ACTED,
    run: ({ web, body }) => web.plans.act(body.plan, body.reason),
  }),
  route({
    method: 'GET',
    path: '/jobs/:job',
    summary: 'One job: its life, attempts, files and ad.',
    answer: s.ONE_JOB,
    run: ({ web, at }) => oneJob(web, idOf(at['job'] ?? '')),
  }),
  route({
    method: 'GET',
    path: '/jobs/:job/why',
    summary: 'Why the job does not run, or how it failed.',
    answer: s.WHY,
    run: async ({ web, at }) => {
      const all: z.infer<typeof s.WHY> = [];
      for await (const { id, summary, details, suggestions } of web.gryphus.why({ ids: [idOf(at['job'] ?? '')] }))
        all.push({ job: nameOf(id), summary, details: [...details], suggestions: [...suggestions] });
      return all;
    },
  }),
  route({
    method: 'GET',
    path: '/jobs/:job/usage',
    summary: 'The resources that the job uses now; empty if it does not run.',
    answer: s.USAGE,
    run: async ({ web, at }) => {
      const [row] = await web.gryphus.top({ ids: [idOf(at['job'] ?? '')] });
      const { elapsed, cpuSeconds, memoryKb, processes } = row ?? {};
      return { elapsed, cpuSeconds, memoryKb, processes };
    },
  }),
  route({
    method: 'GET',
    path: '/jobs/:job/log',
    summary: 'The end of the user log of the job.',
    answer: s.LOG,
    run: ({ web, at }) => userLog(web, idOf(at['job'] ?? '')),
  }),
  writtenRoute({
    method: 'GET',
    path: '/jobs/:job/output',
    summary: 'The end of an output, as bytes; with `follow`, what comes until the job ends.',
    query: s.OUTPUT,
    type: 'application/octet-stream',
    write: ({ web, at, query: { stream, last, follow }, signal }, take) =>
      followOutput(take, web, { id: idOf(at['job'] ?? ''), stream, follow, lastBytes: last, signal }),
  }),
];

const DAGS: readonly Route[] = [
  route({
    method: 'GET',
    path: '/dags',
    summary: 'The DAGs in the queue.',
    answer: z.array(s.DAG),
    run: ({ web }) => dagsOf(web),
  }),
  route({
    method: 'GET',
    path: '/dags/:dag',
    summary: 'One DAG, by the cluster of its manager.',
    answer: s.DAG,
    run: async ({ web, at }) => found(await oneDag(web, clusterOf(at['dag'])), `There is no DAG ${at['dag']}.`),
  }),
  route({
    method: 'GET',
    path: '/dags/:dag/picture',
    summary: 'What to draw of it: its nodes, folded by level if there are many, or those around one.',
    query: STEPS,
    answer: s.PICTURE,
    run: ({ web, at, query }) => pictureOf(web, clusterOf(at['dag']), query),
  }),
  route({
    method: 'GET',
    path: '/dags/:dag/runs',
    summary: 'When its jobs ran.',
    answer: s.RUNS,
    run: ({ web, at }) => runsOf(web.gryphus, Number(clusterOf(at['dag']))),
  }),
  ...(['halt', 'resume'] as const).map((how) =>
    route({
      method: 'POST',
      path: `/dags/:dag/${how}`,
      summary: how === 'halt' ? 'Starts nothing more until it is resumed.' : 'Goes on after a halt.',
      answer: s.NOTHING,
      run: async ({ web, at }) => {
        await (await web.gryphus.dags())[how](clusterOf(at['dag']));
        return {};
      },
    }),
  ),
  route({
    method: 'POST',
    path: '/dags/:dag/throttle',
    summary: 'Sets how many nodes may be in the queue; 0: no limit.',
    body: s.THROTTLE,
    answer: s.NOTHING,
    run: async ({ web, at, body }) => {
      await (await web.gryphus.dags()).throttle(clusterOf(at['dag']), defined(body));
      return {};
    },
  }),
];

const AGENT: readonly Route[] = [
  route({
    method: 'GET',
    path: '/session',
    summary: 'Whose agent this is, and where.',
    answer: s.SESSION,
    run: ({ web: { gryphus, version } }) => ({
      version,
      owner: gryphus.owner,
      machine: hostname(),
      home: gryphus.paths.stateDir.replace(homedir(), '~'),
      zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    }),
  }),
  route({
    method: 'GET',
    path: '/overview',
    summary: 'Totals, their past, the sites, and what needs a person and is known from counters.',
    query: SINCE,
    answer: s.OVERVIEW,
    run: ({ web, query: { after } }) => overview(web, after),
  }),
  route({
    method: 'GET',
    path: '/needs',
    summary: 'Held jobs by reason, and credentials that end.',
    answer: z.array(s.NEED),
    run: ({ web }) => needs(web),
  }),
  route({
    method: 'GET',
    path: '/sites',
    summary: 'The sites: connections, limits, cores, and how long our jobs waited and ran there.',
    answer: z.array(s.SITE),
    run: ({ web }) => measuredSites(web),
  }),
  writtenRoute({
    method: 'POST',
    path: '/sites/:site/login',
    summary: 'Logs in to a site: its questions, as lines of JSON, then `done` or an error.',
    type: 'application/x-ndjson',
    write: ({ web, at, signal }, take) => talkLogin(take(), web, at['site'] ?? '', signal),
  }),
  route({
    method: 'POST',
    path: '/answers/:question',
    summary: 'Answers a question of a log-in (`POST /sites/:site/login`); without `text`, gives up.',
    body: z.strictObject({ text: z.string().max(10_000).optional() }),
    answer: s.NOTHING,
    run: ({ web, at, body }) => {
      web.logins.answer(at['question'] ?? '', body.text);
      return {};
    },
  }),
  route({
    method: 'GET',
    path: '/pool',
    summary: 'Slots, owners and pilots.',
    answer: s.POOL,
    run: ({ web }) => poolOf(web),
  }),
  route({
    method: 'GET',
    path: '/credentials',
    summary: 'The credentials, those that end soonest first.',
    answer: z.array(s.CREDENTIAL),
    run: async ({ web }) => (await credentialsOf(web)).map(shownCredential),
  }),
  route({
    method: 'POST',
    path: '/credentials/:name/renew',
    summary: 'Renews a credential in its own way and releases the jobs that are held for it.',
    answer: z.object({ renewed: z.boolean(), message: z.string() }),
    run: async ({ web, at }) => {
      web.recent.forget('credentials');
      const renewed = await web.gryphus.renewCredential(at['name'] ?? '');
      return { renewed: renewed.ok, message: renewed.ok ? 'It is renewed.' : renewed.message };
    },
  }),
  route({
    method: 'GET',
    path: '/events',
    summary: 'The latest events, oldest first; `GET /api/v1/stream` goes on from there.',
    answer: z.array(s.EVENT_LINE),
    run: ({ web }) => web.hub.latest.slice(-1000).map(eventLine),
  }),
  writtenRoute({
    method: 'GET',
    path: '/stream',
    summary: 'Server-sent events of what changed, in bundles; `Last-Event-ID` goes on from there.',
    type: 'text/event-stream',
    write: ({ web }, take, { 'last-event-id': last }) =>
      streamChanges(take(), web.hub, typeof last === 'string' ? last : undefined),
  }),
];

export const ROUTES: readonly Route[] = [...AGENT, ...JOBS, ...DAGS, ...PROGRAM_ROUTES];

async function history(
  { gryphus }: Web,
  { box, offset, limit }: z.infer<typeof s.TABLE_QUERY>,
): Promise<z.infer<typeof s.TABLE>> {
  const filter = filterOf(box);
  const rows = [];
  const constraint = filter.is === 'constraint' ? { constraint: filter.text } : {};
  let read = 0;
  for await (const job of gryphus.history({ ...constraint, attributes: ROW_ATTRIBUTES, limit: MOST_HISTORY })) {
    read += 1;
    const row = rowOf(job);
    if (filter.is === 'constraint' || filter.fits(row, haystack(row))) rows.push(row);
  }
  const shown = rows.slice(offset, offset + limit).map(shownRow);
  return { found: rows.length, all: read, rows: shown, more: read >= MOST_HISTORY };
}

function shownCredential({
  end,
  left,
  level,
  problem,
  sites,
  type,
  ...rest
}: CredentialStatus): z.infer<typeof s.CREDENTIAL> {
  return { ...rest, end, left, level, problem, sites: [...sites], type: [...type] };
}

function clusterOf(text = ''): string {
  if (/^\d+$/.test(text)) return text;
  throw new GryphusError('bad-input', `${JSON.stringify(text)} is no cluster.`);
}

function found<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new GryphusError('not-found', message);
  return value;
}
