import * as z from 'zod';
import { inputFile } from '../../site/shapes.ts';
import { amount, count, maybe, type Read, texts } from '../../util/schema.ts';
import { PROCESS_IDENTITY } from '../../util/process-identity.ts';
import { runSpec } from '../wire/wire.ts';
import { ATTEMPT_RECORD } from './attempt-place.ts';

/** The lines of a task runner's file `told`: the first describes the shell, each other one a task, before it is started. */
export const TASK_RECORD = z.union([
  z.strictObject({ shell: PROCESS_IDENTITY, spec: runSpec }),
  ATTEMPT_RECORD.omit({ spec: true }).extend({
    n: count,
    args: texts,
    /** If they differ from the task runner's. */
    inputs: maybe(z.array(inputFile)),
    /** The number of the task runner's files that hold its streams. */
    file: count,
    /** When it was recorded, in Unix seconds. */
    at: amount,
    /** Tasks that were forgotten since the previous line. */
    gone: z.array(count),
    /** It is a job, with its own scratch directory. */
    own: maybe(z.literal(true)),
  }),
]);
export type TaskRecord = Read<typeof TASK_RECORD>;
