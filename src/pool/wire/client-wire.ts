/*
 * The protocol between the agent's own processes (GridManagers, maps, commands) and the central manager, over the
 * central manager's socket in the agent's 0700 directory. Questions carry an id, which the answer repeats; reports and
 * chunks are sent unasked.
 */
import * as z from 'zod';
import { attemptKey as key, attemptKeys as keys, attrTexts as ad } from '../../job/schema.ts';
import { homeRequest } from '../../site/chirp.ts';
import { capacity, ending, fetchOutcome, fetchRequest, inputFile, outcome, report, stream } from '../../site/shapes.ts';
import { amount, count, count as id, flag, maybe, moment, type Read, text, texts } from '../../util/schema.ts';
import { directHome } from './direct-wire.ts';
import { reader } from './read-message.ts';
import {
  derivedSpec,
  followedFiles,
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
  want,
} from './wire.ts';

/** What a job asks of the dedicated scheduler. */
const gangRequest = z.strictObject({
  /** How many slots of the attempt's size it needs. */
  count: count.min(1),
  /** How many jobs of its cluster start together with it, itself included. */
  procs: count.min(1),
  /** All slots must be of machines with the same ParallelSchedulingGroup. */
  oneGroup: maybe(z.literal(true)),
  /** It ends when all nodes have ended, not when the first has (ParallelShutdownPolicy). */
  waitsForAll: maybe(z.literal(true)),
});
export type GangRequest = Read<typeof gangRequest>;

/** An attempt that a client requests. */
export const attemptRequest = z.strictObject({
  key,
  owner: text,
  ad,
  size,
  prio: z.number(),
  /** How many seconds it may run without contact to the central manager. */
  lease: amount,
  spec: z.union([derivedSpec, runSpec]),
  /** It also ends when its client has been away for so long. */
  leased: maybe(z.literal(true)),
  /** A job that needs several slots at once, or one from the dedicated scheduler. */
  gang: maybe(gangRequest),
});
export type AttemptRequest = Read<typeof attemptRequest>;

/** A running attempt; without `usage` if its worker does not answer. */
const runningNow = z.strictObject({
  job: text,
  is: z.enum(['running', 'suspended']),
  host: maybe(text),
  /** Unix seconds. */
  startedAt: maybe(moment),
  usage: maybe(runUsage),
});
export type RunningNow = Read<typeof runningNow>;

/** Machines set aside for an owner's parallel jobs. */
export const reservation = z.strictObject({
  id: text,
  owner: text,
  count: count.min(1),
  size,
  /** Unix seconds. */
  from: moment,
  until: moment,
});
/** Slots of the pool that are set aside for parallel jobs (`gryphus reserve`). */
export type Reservation = Read<typeof reservation>;

/** An owner's use of the pool, as the central manager saves it. */
export const userPriority = z.strictObject({
  owner: text,
  /** The real priority: smaller is better; follows the owner's recent usage, in cores. */
  priority: amount,
  /** The Up-Down index. */
  index: maybe(z.number()),
  /** Cores in use now. */
  inUse: amount,
  /** Set with `userprio -setfactor`. */
  factor: maybe(amount),
  /** Core seconds that were used since `begin`, until `last`. Unix seconds. */
  usage: maybe(amount),
  begin: maybe(moment),
  last: maybe(moment),
  /** When all this was so. Unix seconds. */
  at: maybe(moment),
});
export type UserPriority = Read<typeof userPriority>;

/** How many looks saw a machine, and saw it open for jobs; and the cores seen: all, busy and suspended. */
const machineLook = z.object({ looks: count, open: count, cores: amount, busy: amount, suspended: amount });

/** An owner of jobs, as seen by the Negotiator. */
const poolOwner = z.strictObject({
  owner: text,
  /** Smaller is better: the real priority times the factor, or the Up-Down index. */
  priority: z.number(),
  realPriority: amount,
  index: z.number(),
  factor: amount,
  /** Cores in use now. */
  inUse: amount,
  /** Core hours that were used since `begin`, until `last` (0: never). Unix seconds. */
  usedHours: amount,
  begin: moment,
  last: moment,
  /** Jobs and tasks that are waiting for a slot. */
  waiting: count,
});
/** An owner of the pool's jobs: its priority, and what it uses and has used. */
export type PoolOwner = Read<typeof poolOwner>;

/** What condor_userprio can set of an owner; `reset` without `owner`: of all. */
export interface PriorityChange {
  readonly owner?: string;
  readonly set: (typeof PRIORITY_CHANGES)[number];
  readonly value?: number;
}

export const PRIORITY_CHANGES = ['prio', 'factor', 'accum', 'begin', 'last', 'reset', 'delete'] as const;

/**
 * Why a job is waiting or suspended, one line per reason; `wants` is what it requests, if no present worker could ever
 * run it; `byUser`: its user has suspended it.
 */
const waitInPool = z.strictObject({
  lines: texts,
  wants: maybe(size.pick({ cpus: true, memoryMb: true })),
  byUser: maybe(flag),
});
export type WaitInPool = Read<typeof waitInPool>;

/** Why a job is waiting in an empty pool. */
export const NO_WORKERS = 'The pool has no workers now.';

/** What users ask of jobs that run in the pool. */
export const STEERS = ['vacate', 'suspend', 'continue', 'checkpoint'] as const;
export type Steer = (typeof STEERS)[number];

/** The version of this protocol: a command may be of another build than the central manager that runs. */
export const CLIENT_WIRE_VERSION = 1;

const fromClient = z.discriminatedUnion('t', [
  /**
   * `client`: a GridManager's identity, or a map's session. Reports of its attempts are sent to this connection from
   * now on. `version`: of this protocol, 1 if it is missing.
   */
  message('open', { client: text, map: flag, version: maybe(count) }),
  /** `commit`: commits them too. */
  message('prepare', { id, requests: z.array(attemptRequest), commit: flag }),
  message('commit', { id, keys }),
  /** Answered when none of them can run any more, or, if that is not certain yet, with a refusal 'later'. */
  message('cancel', { id, keys, how: z.enum(['remove', 'if-not-started']) }),
  /** The answer contains reports of all of the client's attempts. */
  message('all', { id }),
  message('follow', { key, stdout: count, stderr: count, files: maybe(texts) }),
  want,
  message('fetch', { id, request: fetchRequest }),
  message('forget', { id, keys }),
  /** The worker that ran it brings its results to a partner's gateway itself (`to`), or no more. */
  message('direct', { id, key, to: maybe(directHome) }),
  message('capacity', { id }),
  /** Whether it answers. */
  message('beat', { id }),
  /** What a map's tasks have in common. */
  message('base', { base: text, spec: runSpec, ad, size, owner: text, lease: amount }),
  /**
   * A map's tasks, each with the arguments that are added to those of the base, and the inputs in addition to the
   * base's.
   */
  message('tasks', { base: text, tasks: z.array(z.tuple([key, texts, maybe(z.array(inputFile))])) }),
  /** The ads of the pool's slots. */
  message('slots', { id }),
  /** What a look at its machines shows for the usage of a day, which has those that are named already. */
  message('machines', { id, named: z.array(text) }),
  /** The owners who use the pool or wait for it. */
  message('owners', { id }),
  /** Changes what the Negotiator knows of an owner, as condor_userprio does; without `owner`, of all (only `reset`). */
  message('set-priority', { id, set: z.enum(PRIORITY_CHANGES), owner: maybe(text), value: maybe(z.number()) }),
  /** Sets machines aside, or no more (`drop`). Answered with all reservations. */
  message('reserve', { id, make: maybe(reservation), drop: maybe(text) }),
  /** Why an attempt is waiting. */
  message('why', { id, job: text }),
  /**
   * Opens a shell beside a running job (named as in `steer`); `shell`: a name known only to the client that opened it.
   */
  message('shell', { shell: text, job: text, command: maybe(text), tty: maybe(terminal) }),
  shellIn,
  shellSize,
  shellClose,
  /** What all clients are running now, and its usage. */
  message('top', { id }),
  /** `jobs`: keys without the attempt, `<agent>.<cluster>.<proc>`. */
  message('steer', { id, jobs: texts, how: z.enum(STEERS) }),
  /** A process that monitors a worker knows that it has died. `token`: the token that admitted it. */
  message('worker-died', { id, token: text, message: text }),
  /** Workers admitted by these tokens take no more jobs, and end. */
  message('drain', { id, tokens: texts, now: flag }),
  /** The answer to a job's request, with its bytes. */
  message('home-answer', { call: count, result: z.int() }),
]);
export type FromClient = Read<typeof fromClient>;

const toClient = z.discriminatedUnion('t', [
  message('done', { id, outcomes: z.array(z.tuple([key, outcome])) }),
  message('reports', { id: maybe(id), reports: z.array(report) }),
  message('chunk', { key, stream, offset: count }),
  ...followedFiles,
  message('fetched', { id, outcome: fetchOutcome }),
  message('capacity', { id, capacity }),
  message('slots', { id, ads: z.array(ad) }),
  message('machines', { id, machines: z.record(text, machineLook) }),
  message('owners', { id, owners: z.array(poolOwner) }),
  message('priority-set', { id, known: flag }),
  message('reserved', { id, reservations: z.array(reservation) }),
  message('why', { id, ...waitInPool.shape }),
  message('steered', { id, jobs: texts }),
  /** A map's task has ended. The bytes are its streams; without `inline` they must be fetched. */
  message('result', { key, ending, inline: maybe(inline) }),
  shellOut,
  shellOver,
  message('tops', { id, runs: z.array(runningNow) }),
  message('failed', { id, message: text }),
  /** The connection is refused, and ends. `version`: of the central manager's protocol. */
  message('denied', { message: text, version: maybe(count) }),
  /** A running job's request to its home, with its bytes: answered by `home-answer` with the same number. */
  message('home', { call: count, key, request: homeRequest }),
]);
export type ToClient = Read<typeof toClient>;

export const readFromClient = reader(fromClient);
export const readToClient = reader(toClient);
