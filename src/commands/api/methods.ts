import * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import type { Gryphus, JobId, QueryRequest, Selection } from '../../index.ts';
import { parseJobId } from '../../job/ids.ts';
import { jsonAds } from '../show/ads.ts';
import { expressions } from '../show/expressions.ts';
import type { Inflow } from './inflow.ts';
import { type JobSelection, type Method, METHODS, type Params, type TASKS } from './requests.ts';

export type Task = z.infer<typeof TASKS>[number];

/** What a method needs of its connection. */
export interface Call {
  readonly gryphus: Gryphus;
  /** Aborted when the client cancels the request or goes away. */
  readonly signal: AbortSignal;
  /** Sends an event of the request, as JSON text; waits for a slow reader. */
  readonly event: (json: string) => Promise<void>;
  /** Tasks of a map. */
  readonly tasks: Inflow<Task>;
}

type Handlers = { readonly [M in Method]: (params: Params<M>, call: Call) => Promise<unknown> };

/** How many jobs one event lists. */
const CHUNK = 200;

const HANDLERS: Handlers = {
  submit: async (params, { gryphus }) => {
    if ('description' in params) {
      const { description: text, cwd, name } = params;
      return gryphus.submit({ text, cwd, ...(name === undefined ? {} : { batchName: name }) });
    }
    const { oneJobs } = await import('../../index.ts');
    const { describeJob, siteNamed } = await oneJobs();
    const { site, memory, name, ...rest } = params;
    const asked = {
      ...defined(rest),
      site: await siteNamed(gryphus.paths, site),
      ...(memory === undefined ? {} : { memory: String(memory) }),
      ...(name === undefined ? {} : { batchName: name }),
    };
    return gryphus.submit(describeJob(asked));
  },
  jobs: async ({ where, attributes, limit, ...selection }, { gryphus, event }) => {
    // The id is always there.
    const wanted = attributes === undefined ? undefined : [...new Set(['ClusterId', 'ProcId', ...attributes])];
    const request: QueryRequest = {
      ...selected(selection),
      ...(wanted === undefined ? {} : { attributes: wanted }),
      ...(limit === undefined ? {} : { limit }),
    };
    const json = jsonAds(expressions(), wanted, false);
    const found = { queue: 'query', history: 'history', both: 'jobs' } as const;
    let chunk: string[] = [];
    for await (const { ad } of gryphus[found[where]](request)) {
      chunk.push(json(ad));
      if (chunk.length < CHUNK) continue;
      await event(`[${chunk.join(',')}]`);
      chunk = [];
    }
    if (chunk.length > 0) await event(`[${chunk.join(',')}]`);
    return null;
  },
  wait: async ({ until, seconds, ...selection }, { gryphus, signal }) => {
    const limit = seconds === undefined ? {} : { timeoutMs: seconds * 1000 };
    return { done: await gryphus.wait({ ...selected(selection), until, signal, ...limit }) };
  },
  act: async ({ action, reason, ...selection }, { gryphus }) => {
    const results = await gryphus.act(action, {
      ...selected(selection),
      ...(reason === undefined ? {} : { reason }),
    });
    return results.map(({ id, ...rest }) => ({ job: named(id), ...rest }));
  },
  retry: async (selection, { gryphus }) => {
    const results = await gryphus.retry(selected(selection));
    return results.map(({ id, as, ...rest }) => ({
      job: named(id),
      ...rest,
      ...(as === undefined ? {} : { as: named(as) }),
    }));
  },
  why: async (selection, { gryphus, event }) => {
    for await (const { id, ...why } of gryphus.why(selected(selection)))
      await event(JSON.stringify({ job: named(id), ...why }));
    return null;
  },
  events: async ({ from }, { gryphus, signal, event }) => {
    for await (const one of gryphus.events({ signal, ...(from === undefined ? {} : { from }) }))
      await event(JSON.stringify(one));
    return null;
  },
  sites: (_, { gryphus }) => gryphus.sites(),
  status: (_, { gryphus }) => gryphus.status(),
  map: async (params, { gryphus, signal, event, tasks }) => {
    const request = { ...defined(params), signal };
    const readable = async function* () {
      for await (const task of tasks.read()) yield defined(task);
    };
    for await (const { of, ending, stdout, stderr, tries, problem } of gryphus.map(readable(), request)) {
      const answer = {
        of,
        how: ending.how,
        stdout: stdout.toString('base64'),
        stderr: stderr.toString('base64'),
        tries,
        ...(problem === undefined ? {} : { problem }),
      };
      await event(JSON.stringify(answer));
    }
    return null;
  },
};

type Checked = (given: unknown, call: Call) => Promise<unknown>;

/** Every method, with its parameters as they came. */
export const CALLS: Readonly<Record<Method, Checked>> = {
  submit: checked('submit', METHODS.submit, HANDLERS.submit),
  jobs: checked('jobs', METHODS.jobs, HANDLERS.jobs),
  wait: checked('wait', METHODS.wait, HANDLERS.wait),
  act: checked('act', METHODS.act, HANDLERS.act),
  retry: checked('retry', METHODS.retry, HANDLERS.retry),
  why: checked('why', METHODS.why, HANDLERS.why),
  events: checked('events', METHODS.events, HANDLERS.events),
  sites: checked('sites', METHODS.sites, HANDLERS.sites),
  status: checked('status', METHODS.status, HANDLERS.status),
  map: checked('map', METHODS.map, HANDLERS.map),
};

function checked<T>(name: Method, schema: z.ZodType<T>, handle: (params: T, call: Call) => Promise<unknown>): Checked {
  return (given, call) => {
    const params = schema.safeParse(given);
    if (params.success) return handle(params.data, call);
    const what = z.prettifyError(params.error).replaceAll(/\s+/g, ' ');
    return Promise.reject(new GryphusError('bad-input', `${name}: ${what}`));
  };
}

function selected({ jobs, clusters, owner, constraint }: JobSelection): Selection {
  const ids = jobs?.flatMap((name): JobId[] => {
    const id = parseJobId(name);
    return id ? [id] : [];
  });
  return {
    ...(ids === undefined ? {} : { ids }),
    ...(clusters === undefined ? {} : { clusters }),
    ...(owner === undefined ? {} : { owner }),
    ...(constraint === undefined ? {} : { constraint }),
  };
}

function named({ cluster, proc }: JobId): string {
  return `${cluster}.${proc}`;
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Without the keys whose values are undefined. */
function defined<T extends object>(some: T): Defined<T> {
  return Object.fromEntries(Object.entries(some).filter(([, value]) => value !== undefined)) as Defined<T>;
}
