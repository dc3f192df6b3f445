/*
 * What the agent's own processes (GridManagers, maps, commands) and the central manager say to each other, over the central manager's socket
 * in the agent's 0700 directory. Questions carry an id that their answer repeats; reports and chunks come unasked.
 */
import * as z from 'zod';
import {
  amount,
  attemptKey as key,
  attemptKeys as keys,
  attrTexts as ad,
  capacity,
  count as id,
  count,
  ending,
  fetchOutcome,
  fetchRequest,
  flag,
  inputFile,
  maybe,
  moment,
  outcome,
  type Read,
  report,
  stream,
  text,
  texts,
} from '../../site/shapes.ts';
import { reader } from './read-message.ts';
import {
  derivedSpec,
  inline,
  message,
  runSpec,
  runUsage,
  shellClose,
  shellIn,
  shellOut,
  shellOver,
  shellSize,
  size,
  terminal,
} from './wire.ts';

/** What a client asks to be run. */
const attemptRequest = z.strictObject({
  key,
  owner: text,
  ad,
  size,
  prio: z.number(),
  /** Seconds that it may be without the central manager. */
  lease: amount,
  spec: z.union([derivedSpec, runSpec]),
});
export type AttemptRequest = Read<typeof attemptRequest>;

/** A running attempt; without `usage` where its worker does not answer now. */
const runningNow = z.strictObject({
  job: text,
  is: z.enum(['running', 'suspended']),
  host: maybe(text),
  /** Unix seconds. */
  startedAt: maybe(moment),
  usage: maybe(runUsage),
});
export type RunningNow = Read<typeof runningNow>;

/** What is known of an owner's use of the pool. */
const userPriority = z.strictObject({
  owner: text,
  /** Smaller is better: what the owner used of late, in cores. */
  priority: amount,
  /** Cores in use now. */
  inUse: amount,
});
export type UserPriority = Read<typeof userPriority>;

/** An owner of jobs, as the negotiator sees them. */
const poolOwner = userPriority.extend({
  /** Jobs and tasks that wait for a slot. */
  waiting: count,
});
export type PoolOwner = Read<typeof poolOwner>;

/** What keeps a job waiting, a line for each reason; `wants`: what it asks for, where no worker that is there would ever do. */
const waitInPool = z.strictObject({ lines: texts, wants: maybe(size.pick({ cpus: true, memoryMb: true })) });
export type WaitInPool = Read<typeof waitInPool>;

/** Why a job waits in a pool where nobody is. */
export const NO_WORKERS = 'The pool has no workers now.';

const fromClient = z.discriminatedUnion('t', [
  /** `client`: a GridManager's identity, or a map's session. From now on its attempts' reports come here. */
  message('open', { client: text, map: flag }),
  /** `commit`: and commits them. */
  message('prepare', { id, requests: z.array(attemptRequest), commit: flag }),
  message('commit', { id, keys }),
  /** Answered when none can run any more, or where that cannot be said yet with a refusal 'later'. */
  message('cancel', { id, keys, how: z.enum(['remove', 'if-not-started']) }),
  /** Reports of all of the client's attempts, in the answer. */
  message('all', { id }),
  message('follow', { key, stdout: count, stderr: count }),
  message('fetch', { id, request: fetchRequest }),
  message('forget', { id, keys }),
  message('capacity', { id }),
  /** What a map's tasks have in common. */
  message('base', { base: text, spec: runSpec, ad, size, owner: text, lease: amount }),
  /** A map's tasks, each with the words that follow the base's own arguments, and what it finds beside the base's inputs. */
  message('tasks', { base: text, tasks: z.array(z.tuple([key, texts, maybe(z.array(inputFile))])) }),
  /** The pool's slots, as ads. */
  message('slots', { id }),
  /** Who uses the pool, and who waits for it. */
  message('owners', { id }),
  /** What keeps an attempt waiting. */
  message('why', { id, job: text }),
  /** A shell beside a job (as in `steer`) that runs; `shell`: a name that only whoever opens it knows. */
  message('shell', { shell: text, job: text, command: maybe(text), tty: maybe(terminal) }),
  shellIn,
  shellSize,
  shellClose,
  /** What runs now, of all clients, and what it takes. */
  message('top', { id }),
  /** `jobs`: keys without the attempt, `<agent>.<cluster>.<proc>`. */
  message('steer', { id, jobs: texts, how: z.enum(['vacate', 'suspend', 'continue']) }),
  /** Whoever watches a worker knows that it is no more. `token`: that let it in. */
  message('worker-died', { id, token: text, message: text }),
  /** Workers let in by these tokens take no more jobs, and end. */
  message('drain', { id, tokens: texts, now: flag }),
]);
export type FromClient = Read<typeof fromClient>;

const toClient = z.discriminatedUnion('t', [
  message('done', { id, outcomes: z.array(z.tuple([key, outcome])) }),
  message('reports', { id: maybe(id), reports: z.array(report) }),
  message('chunk', { key, stream, offset: count }),
  message('fetched', { id, outcome: fetchOutcome }),
  message('capacity', { id, capacity }),
  message('slots', { id, ads: z.array(ad) }),
  message('owners', { id, owners: z.array(poolOwner) }),
  message('why', { id, ...waitInPool.shape }),
  message('steered', { id, jobs: texts }),
  /** A map's task has ended. The bytes are its streams; without `inline` they are to be fetched. */
  message('result', { key, ending, inline: maybe(inline) }),
  shellOut,
  shellOver,
  message('tops', { id, runs: z.array(runningNow) }),
  message('failed', { id, message: text }),
]);
export type ToClient = Read<typeof toClient>;

export const readFromClient = reader(fromClient);
export const readToClient = reader(toClient);
