import { statSync } from 'node:fs';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { type JobId, oneJobs, type QueryRequest, type Selection, type Submitted } from '../index.ts';
import { expressions } from '../job/expressions.ts';
import { jsonAds } from '../job/json-ads.ts';
import { defined } from './defined.ts';
import { nameOf } from './job-table.ts';
import { idOf } from './plan.ts';
import * as p from './program-schemas.ts';
import { itemsRoute, type Route, route } from './route.ts';
import type { Web } from './web.ts';

/** What programs use, such as Python's module. */
export const PROGRAM_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/run',
    summary: 'Submits one command, as `gryphus run`; answers when it is on disk and will run.',
    body: p.COMMAND,
    answer: p.SUBMITTED,
    run: async ({ web: { gryphus }, body: { site, memory, name, ...rest } }) => {
      const { describeJob, siteNamed } = await oneJobs();
      checkDirectory(rest.cwd);
      const asked = {
        ...defined(rest),
        site: await siteNamed(gryphus.paths, site),
        ...(memory === undefined ? {} : { memory: String(memory) }),
        ...(name === undefined ? {} : { batchName: name }),
      };
      return submitted(await gryphus.submit(describeJob(asked)));
    },
  }),
  route({
    method: 'POST',
    path: '/submit',
    summary: 'Submits a submit file; answers when its jobs are on disk and will run.',
    body: p.SUBMIT,
    answer: p.SUBMITTED,
    run: async ({ web: { gryphus }, body: { description: text, cwd, name } }) => {
      checkDirectory(cwd);
      return submitted(await gryphus.submit({ text, cwd, ...(name === undefined ? {} : { batchName: name }) }));
    },
  }),
  itemsRoute({
    method: 'POST',
    path: '/jobs/query',
    summary: 'The ads of jobs, with these attributes or all.',
    body: p.QUERY,
    item: p.AD,
    run: ({ web, body }) => ads(web, body),
  }),
  route({
    method: 'POST',
    path: '/jobs/wait',
    summary: 'Waits until the jobs have ended, started, or ended or been held (`settled`).',
    body: p.WAIT,
    answer: p.WAITED,
    run: async ({ web, body: { until, seconds, ...selection }, signal }) => {
      const limit = seconds === undefined ? {} : { timeoutMs: seconds * 1000 };
      return { done: await web.gryphus.wait({ ...selected(selection), until, signal, ...limit }) };
    },
  }),
  ...p.DIRECT.map((action) =>
    route({
      method: 'POST',
      path: `/jobs/${action}`,
      summary: `As \`gryphus ${action === 'remove' ? 'rm' : action}\`: at once, without a plan.`,
      body: p.DIRECT_ACT,
      answer: p.RESULTS,
      run: async ({ web, body: { reason, ...selection } }) => {
        const request = { ...selected(selection), ...(reason === undefined ? {} : { reason }) };
        const results = await web.gryphus.act(action, request);
        return results.map(({ id, ...rest }) => ({ job: nameOf(id), ...rest }));
      },
    }),
  ),
  route({
    method: 'POST',
    path: '/jobs/retry',
    summary: 'Submits failed and removed jobs again.',
    body: p.SELECTION,
    answer: p.RETRIED,
    run: async ({ web, body }) => {
      const results = await web.gryphus.retry(selected(body));
      return results.map(({ id, as, ...rest }) => ({
        job: nameOf(id),
        ...rest,
        ...(as === undefined ? {} : { as: nameOf(as) }),
      }));
    },
  }),
  itemsRoute({
    method: 'POST',
    path: '/jobs/why',
    summary: 'Why each job does not run, or how it failed.',
    body: p.SELECTION,
    item: p.REASON,
    run: async function* ({ web, body }) {
      for await (const { id, ...why } of web.gryphus.why(selected(body)))
        yield JSON.stringify({ job: nameOf(id), ...why });
    },
  }),
  itemsRoute({
    method: 'GET',
    path: '/events/follow',
    summary: 'Every change of the queue, until the connection ends.',
    query: p.EVENTS_FROM,
    item: p.EVENT,
    quiet: true,
    run: async function* ({ web, query: { from }, signal }) {
      for await (const event of web.gryphus.events({ signal, ...(from === undefined ? {} : { from }) }))
        yield JSON.stringify(event);
    },
  }),
  route({
    method: 'GET',
    path: '/status',
    summary: 'The daemons, as `gryphus status`.',
    answer: z.looseObject({ running: z.boolean(), home: z.string() }),
    run: async ({ web }) => ({ ...(await web.gryphus.status()) }),
  }),
  itemsRoute({
    method: 'POST',
    path: '/maps',
    summary: 'Runs tasks in the pool, and tells the end of each. The end of the connection withdraws the others.',
    body: p.MAP,
    item: p.MAP_ITEM,
    quiet: true,
    run: ({ web, body, signal }) => web.maps.run(body, signal),
  }),
  route({
    method: 'POST',
    path: '/maps/:map/tasks',
    summary: 'More tasks for a map; answers when the pool has taken most of them. `last`: no more will come.',
    body: p.TASKS,
    answer: p.TAKEN,
    run: async ({ web, at, body, signal }) => ({ waiting: await web.maps.add(at['map'] ?? '', body, signal) }),
  }),
];

async function* ads(
  { gryphus }: Web,
  { where, attributes, limit, ...selection }: z.infer<typeof p.QUERY>,
): AsyncGenerator<string> {
  // The id is always there.
  const wanted = attributes === undefined ? undefined : [...new Set(['ClusterId', 'ProcId', ...attributes])];
  const request: QueryRequest = {
    ...selected(selection),
    ...(wanted === undefined ? {} : { attributes: wanted }),
    ...(limit === undefined ? {} : { limit }),
  };
  const json = jsonAds(expressions(), wanted, false);
  const found = { queue: 'query', history: 'history', both: 'jobs' } as const;
  for await (const { ad } of gryphus[found[where]](request)) yield json(ad);
}

function selected({ jobs, ...rest }: z.infer<typeof p.SELECTION>): Selection {
  const ids = jobs?.map((name): JobId => idOf(name));
  return { ...defined(rest), ...(ids === undefined ? {} : { ids }) };
}

function submitted({ warnings, ...rest }: Submitted): z.infer<typeof p.SUBMITTED> {
  return { ...rest, warnings: [...warnings] };
}

/** Otherwise the job would be held only when it should start. */
function checkDirectory(cwd: string | undefined): void {
  if (cwd === undefined || statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new GryphusError('bad-input', `cwd: there is no directory ${cwd}.`, {
    suggestions: ['Make it, or name another.'],
  });
}
