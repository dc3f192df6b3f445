import * as z from 'zod';

/** The version of the protocol (docs/protocol.md). It grows when something that was valid no longer is. */
export const PROTOCOL = 1;

const job = z.string().regex(/^\d+\.\d+$/, 'a job is written as "12.3"');
const strings = z.array(z.string());
const variables = z.record(z.string(), z.string());

/** Which jobs: ids and clusters add up, everything else narrows. */
const selection = z.strictObject({
  jobs: z.array(job).optional(),
  clusters: z.array(z.int().nonnegative()).optional(),
  owner: z.string().optional(),
  constraint: z.string().optional(),
});

export type JobSelection = z.infer<typeof selection>;

const oneJob = z.strictObject({
  command: strings.min(1),
  site: z.string().optional(),
  queue: z.string().optional(),
  cwd: z.string().optional(),
  cpus: z.int().positive().optional(),
  memory: z.union([z.string(), z.number()]).optional(),
  gpus: z.int().nonnegative().optional(),
  seconds: z.number().positive().optional(),
  env: variables.optional(),
  input: strings.optional(),
  output: strings.optional(),
  stdin: z.string().optional(),
  stdout: z.string().optional(),
  stderr: z.string().optional(),
  name: z.string().optional(),
});

const description = z.strictObject({ description: z.string(), cwd: z.string(), name: z.string().optional() });

/** The parameters of each method. */
export const METHODS = {
  submit: z.union([oneJob, description]),
  jobs: z.strictObject({
    ...selection.shape,
    where: z.enum(['queue', 'history', 'both']).default('queue'),
    attributes: strings.optional(),
    limit: z.int().nonnegative().optional(),
  }),
  wait: z.strictObject({
    ...selection.shape,
    until: z.enum(['end', 'start', 'settled']).default('end'),
    seconds: z.number().nonnegative().optional(),
  }),
  act: z.strictObject({
    ...selection.shape,
    action: z.enum(['hold', 'release', 'remove']),
    reason: z.string().optional(),
  }),
  retry: selection,
  why: selection,
  events: z.strictObject({ from: z.string().optional() }),
  sites: z.strictObject({}),
  status: z.strictObject({}),
  map: z.strictObject({
    executable: z.string(),
    args: strings.optional(),
    cwd: z.string(),
    env: variables.optional(),
    inputs: strings.optional(),
    anywhere: z.boolean().optional(),
    cpus: z.int().positive().optional(),
    memory: z.int().positive().optional(),
    requirements: z.string().optional(),
    rank: z.string().optional(),
    retries: z.int().nonnegative().optional(),
    atOnce: z.int().positive().optional(),
  }),
} as const;

export type Method = keyof typeof METHODS;
export type Params<M extends Method> = z.infer<(typeof METHODS)[M]>;

/** The tasks that a client adds to a map that runs. */
export const TASKS = z.array(
  z.strictObject({
    of: z.union([z.string(), z.number()]),
    args: strings,
    inputs: strings.optional(),
    outputs: strings.optional(),
  }),
);

/** Every line of a client: a request, more tasks for a map, or the end of a request that goes on. */
export const LINE = z.union([
  z.strictObject({ id: z.int(), method: z.string(), params: z.unknown().optional() }),
  z.strictObject({ id: z.int(), tasks: TASKS }),
  z.strictObject({ id: z.int(), end: z.literal(true) }),
  z.strictObject({ id: z.int(), cancel: z.literal(true) }),
]);

export function isMethod(name: string): name is Method {
  return Object.hasOwn(METHODS, name);
}
