import * as z from 'zod';
import { ACTIONS, JOB } from './schemas.ts';

/*
 * The shapes of what programs ask for and the page does not: submits, waits, actions at once, maps.
 */

const text = z.string();
const strings = z.array(text);
const variables = z.record(text, text);
const count = z.int().nonnegative();
const cwd = text
  .startsWith('/', 'an absolute path')
  .meta({ description: 'The base of relative file names, an absolute path.' });

/** Which jobs: ids and clusters add up, everything else narrows; all of them if it is empty. */
export const SELECTION = z.strictObject({
  jobs: z.array(JOB).optional(),
  clusters: z.array(count).optional(),
  owner: text.optional(),
  constraint: text.optional().meta({ description: 'A ClassAd expression.' }),
});

const MEMORY = 'a number of MB, or a text such as "4G"';

/** As `gryphus run`. */
export const COMMAND = z.strictObject({
  command: strings.min(1).meta({ description: 'The program and its arguments.' }),
  site: text.optional(),
  queue: text.optional(),
  cwd: cwd.optional(),
  cpus: z.int().positive().optional(),
  memory: z
    .union([text.regex(/^\d+(?:\.\d+)?\s*(?:[KMGT]i?)?B?$/i, MEMORY), z.number().positive(MEMORY)], MEMORY)
    .optional()
    .meta({ description: 'MB, or such as "4G".' }),
  gpus: count.optional(),
  seconds: z.number().positive().optional(),
  env: variables.optional(),
  input: strings.optional(),
  output: strings.optional(),
  stdin: text.optional(),
  stdout: text.optional().meta({ description: '`{job}` is the id.' }),
  stderr: text.optional(),
  name: text.optional().meta({ description: 'The batch name.' }),
});

export const SUBMIT = z.strictObject({
  description: text.meta({ description: 'The text of a submit file.' }),
  cwd,
  name: text.optional().meta({ description: 'The batch name.' }),
});
export const SUBMITTED = z.object({
  cluster: count,
  queued: count.meta({ description: 'Jobs in the queue now.' }),
  total: count.meta({ description: 'With those that late materialization makes later.' }),
  warnings: z.array(z.object({ message: text, line: count.optional() })),
});

export const QUERY = z.strictObject({
  ...SELECTION.shape,
  where: z.enum(['queue', 'history', 'both']).default('queue'),
  attributes: strings.optional(),
  limit: count.optional(),
});
export const AD = z.record(text, z.unknown()).meta({ description: 'A job: HTCondor’s attributes, as `q --json`.' });

export const WAIT = z.strictObject({
  ...SELECTION.shape,
  until: z.enum(['end', 'start', 'settled']).default('end'),
  seconds: z.number().nonnegative().optional(),
});
export const WAITED = z.object({ done: z.boolean().meta({ description: 'False if the time ran out.' }) });

/** Actions that programs may take without a plan. */
export const DIRECT = ACTIONS.slice(0, 3) as ['hold', 'release', 'remove'];
export const DIRECT_ACT = z.strictObject({ ...SELECTION.shape, reason: text.optional() });
const RESULT = z.object({ job: JOB, result: text, message: text });
export const RESULTS = z.array(RESULT);
export const RETRIED = z.array(RESULT.extend({ as: JOB.optional().meta({ description: 'The job in its place.' }) }));
export const REASON = z.object({
  job: JOB,
  state: text,
  summary: text,
  details: strings,
  suggestions: strings,
});

export const EVENTS_FROM = z.strictObject({
  from: text.optional().meta({ description: 'The cursor of an earlier event; default: from now on.' }),
});
export const EVENT = z
  .looseObject({ type: text, at: z.number().meta({ description: 'Unix milliseconds.' }), cursor: text })
  .meta({ description: 'A change of the queue, with what its type has.' });

export const TASK = z.strictObject({
  of: z.union([text, z.number()], 'a number or a text').meta({ description: 'Returned with its end.' }),
  args: strings,
  inputs: strings.optional().meta({ description: 'Files below `cwd`.' }),
  outputs: strings.optional(),
});
const MORE_TASKS = { tasks: z.array(TASK).default([]), last: z.boolean().default(false) };
export const TASKS = z.strictObject(MORE_TASKS);
export const MAP = z.strictObject({
  executable: text,
  args: strings.optional().meta({ description: 'Before each task’s own.' }),
  cwd,
  env: variables.optional(),
  inputs: strings.optional(),
  anywhere: z.boolean().optional(),
  cpus: z.int().positive().optional(),
  memory: z.int().positive().optional().meta({ description: 'MB' }),
  requirements: text.optional(),
  rank: text.optional(),
  retries: count.optional(),
  atOnce: z.int().positive().optional(),
  ...MORE_TASKS,
});
export const MAP_ITEM = z.union([
  z.object({ map: text }).meta({ description: 'The first item: where further tasks go.' }),
  z.object({
    of: z.union([text, z.number()]),
    how: z.looseObject({ kind: text }),
    stdout: text.meta({ description: 'In base64.' }),
    stderr: text.meta({ description: 'In base64.' }),
    tries: count,
    problem: text.optional().meta({ description: 'Why it failed although its program succeeded.' }),
  }),
]);
export const TAKEN = z.object({ waiting: count.meta({ description: 'Tasks that the pool has not taken yet.' }) });
