import * as z from 'zod';
import { SORTS } from './order.ts';

/*
 * The shapes of the HTTP interface (/api/v1). The OpenAPI document is made from them, and every request is checked by them.
 */

const count = z.int().nonnegative();
const text = z.string();
/** Unix seconds. */
const seconds = z.number();

export const JOB = z
  .string()
  .regex(/^\d+\.\d+$/, 'a job is written as 12.3')
  .meta({ description: 'cluster.proc' });
export const ACTIONS = ['hold', 'release', 'remove', 'vacate', 'suspend', 'continue', 'edit'] as const;

export const SESSION = z.object({
  version: text,
  owner: text,
  machine: text,
  home: text,
  zone: text.meta({ description: 'The time zone of the machine of the agent.' }),
});

const TOTALS = z.object({
  jobs: count,
  completed: count,
  removed: count,
  idle: count,
  running: count,
  held: count,
  suspended: count,
  unmaterialized: count,
});

export const SAMPLE = z.object({
  at: seconds,
  idle: count,
  running: count,
  held: count,
  suspended: count,
  started: count,
  ended: count,
  failed: count,
});

export const SITE = z.object({
  name: text,
  url: text,
  batch: text,
  connection: z.enum(['unused', 'up', 'down', 'needs-login', 'refused']),
  learned: z.object({ jobs: count, message: text, at: z.number() }).optional(),
  outOfUse: text.optional(),
  nextTry: z.number().optional(),
  message: text.optional(),
  since: z.number().optional(),
  idle: count,
  queuedThere: count,
  running: count,
  unknown: count,
  sending: count.meta({ description: 'Jobs whose input is on its way.' }),
  fetching: count.meta({ description: 'Jobs whose output is on its way.' }),
  measured: z
    .object({
      cores: count.optional(),
      freeCores: count.optional(),
      meanWait: z.number().optional().meta({ description: 'Seconds in its queue, as our jobs waited.' }),
      meanRun: z.number().optional().meta({ description: 'Seconds that our jobs ran.' }),
      expectedWait: z.number().optional().meta({ description: 'Seconds until one more job would start.' }),
      failures: count.meta({ description: 'Failures in the last hour.' }),
    })
    .optional(),
});

export const CREDENTIAL = z.object({
  name: text,
  what: text,
  state: z.enum(['good', 'ended', 'unusable', 'early']),
  end: seconds.optional(),
  left: z.number().optional().meta({ description: 'Seconds.' }),
  level: z.number().optional().meta({ description: 'The fraction of its life that is left.' }),
  renews: z.boolean(),
  waiting: count,
  there: count,
  held: count,
  sites: z.array(text),
  problem: text.optional(),
  type: z.array(text),
});

export const NEED = z.object({
  what: z.enum(['held', 'log-in', 'credential', 'site', 'user-log', 'scheduler']),
  text,
  count: count.optional(),
  jobs: z.array(text).optional(),
  name: text.optional(),
});

export const OVERVIEW = z.object({
  totals: TOTALS,
  samples: z.array(SAMPLE),
  sites: z.array(SITE),
  needs: z.array(NEED),
  scheduler: z.object({ running: z.boolean(), since: z.number().optional() }),
});

export const BATCH = z.object({
  owner: text,
  name: text,
  submitted: seconds,
  done: count,
  total: count,
  running: count,
  idle: count,
  held: count,
  first: text,
  last: text,
  clusters: z.array(count),
  dag: count.optional().meta({ description: 'The cluster of the manager, if it is a DAG.' }),
});
export const BATCHES = z.object({ all: count, batches: z.array(BATCH) });
export const PAGE = {
  offset: z.coerce.number().int().nonnegative().default(0),
  limit: z.coerce.number().int().positive().max(1000).default(100),
};

export const ROW = z.object({
  job: JOB,
  state: text.meta({ description: 'The state in the life of a job.' }),
  shows: z.enum(['idle', 'running', 'removed', 'completed', 'held', 'transferring', 'suspended']),
  owner: text,
  batch: text,
  command: text,
  site: text,
  host: text,
  node: text,
  submitted: seconds,
  started: seconds.optional(),
  since: seconds,
  ran: z.number(),
  prio: z.number(),
  memory: z.number().optional().meta({ description: 'MB' }),
  cpus: z.number(),
  runs: z.number(),
  hold: text,
  exit: text,
});

export const TABLE_QUERY = z.strictObject({
  ...PAGE,
  box: z.string().max(20_000).default('').meta({ description: 'Words, or a ClassAd constraint.' }),
  sort: z.enum(SORTS).default('id'),
  descending: z.stringbool().default(false),
  where: z.enum(['queue', 'history']).default('queue'),
});
export const TABLE = z.object({ found: count, all: count, rows: z.array(ROW), more: z.boolean() });

export const CHOICE = z.strictObject({
  jobs: z.array(JOB).max(100_000).default([]),
  clusters: z.array(count).max(100_000).default([]),
  box: z.string().max(20_000).optional().meta({ description: 'Instead of names: all jobs that fit the box.' }),
});
export const PLAN_ASKED = z.strictObject({
  action: z.enum(ACTIONS),
  choice: CHOICE,
  set: z.record(z.string().regex(/^[A-Za-z_]\w*$/), z.string().max(10_000)).optional(),
});
export const PLAN = z.object({
  plan: text,
  will: count,
  says: text,
  wont: z.array(z.object({ why: text, count })),
  examples: z.array(JOB),
});
export const ACT = z.strictObject({ plan: text, reason: z.string().max(1000).optional() });
export const ACTED = z.object({ done: count, others: z.array(z.object({ message: text, count, jobs: z.array(JOB) })) });

export const LIFE_EVENT = z.object({ at: z.number(), type: text, text });
export const ATTEMPT = z.object({
  number: count,
  host: text,
  started: z.number(),
  ended: z.number().optional(),
  how: text,
});
export const FILE = z.object({ role: text, name: text, bytes: count.optional(), missing: z.boolean() });
export const ONE_JOB = z.object({
  row: ROW,
  in: z.enum(['queue', 'history']),
  attempt: count,
  directory: text,
  life: z.array(LIFE_EVENT),
  attempts: z.array(ATTEMPT),
  files: z.array(FILE),
  memory: z.array(z.object({ at: z.number(), mb: z.number() })),
  ad: z.array(z.tuple([text, text])),
  log: text.optional(),
});
export const WHY = z.array(z.object({ job: JOB, summary: text, details: z.array(text), suggestions: z.array(text) }));
export const USAGE = z.object({
  elapsed: z.number().optional(),
  cpuSeconds: z.number().optional(),
  memoryKb: z.number().optional(),
  processes: z.number().optional(),
});
export const OUTPUT = z.strictObject({
  stream: z.enum(['stdout', 'stderr']).default('stdout'),
  last: z.coerce
    .number()
    .int()
    .positive()
    .max(64 * 2 ** 20)
    .default(65_536),
  follow: z.stringbool().default(false),
});
export const LOG = z.object({ path: text.optional(), text, cut: z.boolean() });

const SLOT = z.object({
  name: text,
  machine: text,
  site: text,
  state: text,
  activity: text,
  whole: z.boolean().meta({ description: 'A machine, of which claimed slots are parts.' }),
  cpus: z.number(),
  memory: z.number(),
  gpus: z.number(),
  load: z.number(),
  job: text,
  user: text,
  since: seconds,
});
const PILOT = z.object({
  job: text,
  site: text,
  is: text,
  cores: z.number(),
  busy: z.number(),
  age: z.number(),
  host: text.optional(),
  left: z.number().optional(),
  message: text.optional(),
});
export const POOL = z.object({
  slots: z.array(SLOT),
  owners: z.array(
    z.object({ owner: text, priority: z.number(), realPriority: z.number(), factor: z.number(), inUse: z.number() }),
  ),
  pilots: z.array(PILOT),
  used: z.object({
    from: text.meta({ description: 'The first day, such as 2026-11-01.' }),
    owners: z.array(
      z.object({
        owner: text,
        jobs: count,
        capacityHours: z.number().meta({ description: 'Core hours.' }),
        cpuHours: z.number(),
        waitRatio: z.number().optional().meta({ description: 'Waiting for run time, the median.' }),
        leverage: z
          .number()
          .optional()
          .meta({ description: 'Core seconds for each second of processor time at home.' }),
      }),
    ),
  }),
  failures: z.array(z.object({ site: text, at: seconds, message: text })),
});

export const DAG = z.object({
  cluster: count,
  files: z.array(text),
  directory: text,
  batchName: text,
  manager: text,
  submitted: seconds,
  exitCode: z.number().optional(),
  continuesFrom: text.optional().meta({ description: 'The rescue file from which it continues.' }),
  rescue: text
    .optional()
    .meta({ description: 'After a bad end: the newest rescue file, from which a new submission continues.' }),
  progress: z
    .object({
      total: count,
      done: count,
      pre: count,
      queued: count,
      post: count,
      ready: count,
      unready: count,
      failed: count,
      futile: count,
      held: count,
      status: text,
      fraction: z.number(),
      criticalPath: z.object({
        length: count,
        nodes: z.array(z.object({ node: text, status: text })),
        waitsFor: text,
      }),
      failures: z.array(z.object({ node: text, error: text })),
      retries: z.object({ made: count, nodes: z.array(z.object({ node: text, made: count, most: count })) }).optional(),
    })
    .optional(),
});
export const PICTURE = z.object({
  boxes: z.array(
    z.object({
      label: text,
      level: z.int(),
      count,
      nodes: z.array(text),
      states: z.record(z.string(), count),
    }),
  ),
  lines: z.array(z.object({ from: count, to: count, count })),
  grouped: z.boolean(),
  size: count,
  left: count,
});
export const RUNS = z.array(
  z.object({
    node: text,
    job: JOB,
    submitted: seconds,
    started: seconds.optional(),
    ended: seconds.optional(),
    shows: text,
  }),
);
export const THROTTLE = z.strictObject({
  maxJobs: count.optional(),
  maxIdle: count.optional(),
  maxPre: count.optional(),
  maxPost: count.optional(),
});
export const EVENT_LINE = z.object({
  cursor: text,
  at: z.number(),
  kind: text,
  job: text.optional(),
  site: text.optional(),
  text,
});
export const ERROR = z.object({
  code: text.meta({ description: 'One of a closed list; for programs.' }),
  message: text,
  suggestions: z.array(text),
  faults: z
    .array(z.object({ field: text, message: text }))
    .optional()
    .meta({ description: 'Each thing that is wrong in the request.' }),
});
export const NOTHING = z.object({});
