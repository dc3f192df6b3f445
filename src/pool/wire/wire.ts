/*
 * The protocol between a worker and the central manager. The worker dials; whatever carries the connection (a Unix
 * socket, a TLS port, an ssh forward, files in a mailbox) provides both sides with a duplex stream, and does not
 * interpret what is sent.
 *
 *   worker                             central manager
 *   hello(token, instance, nonce)  →
 *                                  ←   challenge(nonce, the central manager's proof)
 *   proof(ad, what it holds)       →
 *                                  ←   welcome(leases) | denied(message)
 *   ad, started, ended, gone, …    ↔   start, cancel, forget, follow, …
 *
 * Every message may be repeated safely: attempts are identified by their keys. After each reconnection the worker
 * reports everything it holds, and the central manager sends again what is missing.
 */
import * as z from 'zod';
import { attemptKey as key, attemptKeys as keys, attrTexts as ad } from '../../job/schema.ts';
import { homeRequest } from '../../site/chirp.ts';
import {
  ending,
  fileSize,
  inputFile,
  oddOutput,
  preemptedBy,
  program,
  stream,
  wantedPiece,
} from '../../site/shapes.ts';
import { amount, amounts, count, flag, maybe, moment, type Read, text, texts } from '../../util/schema.ts';
import { directHome } from './direct-wire.ts';
import { reader } from './read-message.ts';

/**
 * The version of this protocol that a worker speaks. Messages are checked strictly, so whatever an older worker would refuse or lack
 * increments it.
 */
export const WIRE_VERSION: number = 2;
/**
 * The oldest that a central manager speaks: pilots of an earlier Gryphus work until their allocations end. What is newer than a
 * worker's own version is not sent to it.
 */
const OLDEST_WIRE: number = 2;

/** Why a worker of this version is refused, if it is. */
export function wireRefusal(version: number): string | undefined {
  if (Number.isInteger(version) && version >= OLDEST_WIRE && version <= WIRE_VERSION) return undefined;
  const mine = OLDEST_WIRE === WIRE_VERSION ? `version ${WIRE_VERSION}` : `versions ${OLDEST_WIRE} to ${WIRE_VERSION}`;
  return `it speaks version ${version} of the workers' protocol, and this agent ${mine}`;
}

/**
 * Cores, MB of memory, KB of disk, GPUs and resources with names of the user's choice (in lower case): the size of a
 * slot, and what a job requests.
 */
export const size = z.strictObject({
  cpus: amount,
  memoryMb: amount,
  diskKb: amount,
  gpus: amount,
  others: maybe(amounts),
});
export type Size = Read<typeof size>;

/** What a worker needs to know to run an attempt. */
export const runSpec = program.extend({
  /** The maximum run time in seconds, after which the worker ends it. */
  walltimeSeconds: maybe(amount),
  /** The signal that asks it to end; default SIGTERM. */
  killSignal: maybe(text),
  /** Seconds between that signal and SIGKILL. */
  vacateSeconds: maybe(amount),
  /** It may send requests to its home (`want_io_proxy`). */
  ioProxy: maybe(z.literal(true)),
  /** Its calls about files at home are answered from there (`want_remote_io`). */
  remoteIo: maybe(z.literal(true)),
});
export type RunSpec = Read<typeof runSpec>;

/** A run that differs from another only in its arguments and its additional inputs. */
export const derivedSpec = z.strictObject({ base: text, args: texts, inputs: maybe(z.array(inputFile)) });
export type DerivedSpec = Read<typeof derivedSpec>;

export function derived(base: RunSpec, { args, inputs }: DerivedSpec): RunSpec {
  return { ...base, args, ...(inputs === undefined ? {} : { inputs: [...base.inputs, ...inputs] }) };
}

/** What a worker reports of an attempt that it holds. */
const heldAttempt = z.strictObject({
  key,
  is: z.enum(['staging', 'running', 'suspended', 'ended']),
  startedAt: maybe(moment),
  ending: maybe(ending),
});
export type HeldAttempt = Read<typeof heldAttempt>;

/** A file in an ended attempt's directory. */
const outputFile = z.strictObject({
  name: text,
  bytes: count,
  executable: flag,
  /** Permission bits that the job set on it. */
  mode: maybe(count.max(0o777)),
  /** Included on request. */
  sha256: maybe(text),
});
export type OutputFile = Read<typeof outputFile>;

/** The terminal of the user who opened a shell. */
export const terminal = z.strictObject({ rows: count, cols: count, term: text });
export type Terminal = Read<typeof terminal>;

/** The current usage of a running attempt's processes. */
export const runUsage = z.strictObject({
  key,
  /** User and system time of live processes and of their children that have ended. */
  cpuSeconds: amount,
  rssKb: amount,
  processes: count,
});
export type RunUsage = Read<typeof runUsage>;

/** How the attached bytes are divided between the streams; stdout comes first. */
export const inline = z.strictObject({ stdout: count, stderr: count });

export const message = <T extends string, S extends z.core.$ZodLooseShape>(t: T, shape: S) =>
  z.strictObject({ t: z.literal(t), ...shape });
const question = <T extends string, S extends z.core.$ZodLooseShape>(what: T, shape: S) =>
  z.strictObject({ t: z.literal('ask'), id: count, what: z.literal(what), ...shape });

/** A question with one answer. */
const ask = z.discriminatedUnion('what', [
  /** Bytes of an input, from worker to central manager; only for attempts granted to that worker. */
  question('blob', { key, sha256: text, offset: count, bytes: count }),
  /**
   * An ended attempt's results (`new`: files that were not there at the start; `patterns`: those that match, if there are
   * any, of a worker with HasStreamResults; `digests`: SHA-256 of each, or of those that are not worth a connection of their own, of
   * a worker with HAS_STAGING_LINKS).
   */
  question('files', {
    key,
    outputs: z.union([z.literal('new'), texts]),
    patterns: maybe(texts),
    digests: z.union([flag, z.literal('small')]),
  }),
  /** Bytes of `stdout`, `stderr` or `work/NAME`. */
  question('read', { key, path: text, offset: count, bytes: count }),
  /**
   * Brings a partner's results to its gateway itself: answered when it has connected there. Without `to`, a connection that it has
   * ends. Only of a worker with HasDirectResults.
   */
  question('direct', { key, to: maybe(directHome) }),
  /**
   * Connects for the bytes of an attempt's large files (`StagingLink`): answered when it has connected. Only of a worker with
   * HAS_STAGING_LINKS.
   */
  question('staging', {
    key,
    for: z.enum(['inputs', 'results']),
    name: text.max(64),
    secret: z.string().regex(/^[0-9a-f]{64}$/),
  }),
  /** The usage of running attempts. */
  question('usage', { keys }),
  /** Asks for a proxy, from worker to central manager: the answer (PEM) to a certificate request. */
  question('proxy', { key, name: text, request: text }),
  /** A running job's request to its home, from worker to central manager, with the bytes that belong to it. */
  question('home', { key, request: homeRequest }),
]);
export type WireAsk = Read<typeof ask>;

/** The bytes of an answer are the requested content; fewer than requested at its end. */
const answer = z.discriminatedUnion('ok', [
  message('answer', {
    id: count,
    ok: z.literal(true),
    files: maybe(z.array(outputFile)),
    missing: maybe(texts),
    odd: maybe(z.array(oddOutput)),
    usage: maybe(z.array(runUsage)),
    result: maybe(z.int()),
  }),
  /** `refused`: it will be no better if it is asked again. */
  message('answer', { id: count, ok: z.literal(false), message: text, refused: maybe(flag) }),
]);
export type WireAnswer = Read<typeof answer>;

/** The output of a shell beside a job, and its exit status (as with ssh, 255 if it could not be opened). */
export const shellOut = message('shell-out', { shell: text, stream });
export const shellOver = message('shell-over', { shell: text, status: z.int(), message: maybe(text) });

/** Input for a shell; `end`: no more will follow. */
export const shellIn = message('shell-in', { shell: text, end: flag });
/** The new size of its terminal's window. */
export const shellSize = message('shell-size', { shell: text, rows: count, cols: count });
export const shellClose = message('shell-close', { shell: text });

/** Of files that grow, those whose sizes have changed, and wanted bytes, or none. */
export const followedFiles = [
  /** `isFirst`: what was wanted before, and has not come, will not come. */
  message('sizes', { key, files: z.array(fileSize), isFirst: flag }),
  message('piece', { key, ...wantedPiece.shape }),
] as const;
/** What is wanted of the files that grow: each is answered by a piece. */
export const want = message('want', { key, files: z.array(wantedPiece) });

const fromWorker = z.discriminatedUnion('t', [
  message('hello', {
    version: z.number(),
    token: text,
    /** Created once for each worker directory: distinguishes workers with the same token. */
    instance: z.string().min(1),
    nonce: text,
  }),
  message('proof', {
    proof: text,
    ad,
    size,
    /** Identifies the machine's boot: what a worker had on disk before another boot may be gone. */
    boot: text,
    attempts: z.array(heldAttempt),
  }),
  /** Changes in its ad, such as load and time to live, and its size if that has changed. */
  message('ad', { ad, size: maybe(size) }),
  message('started', { key, at: moment }),
  /** A node of a parallel job has everything it needs, and waits for `go`. */
  message('ready', { key, claim: text }),
  z.strictObject({ t: z.enum(['suspended', 'resumed']), key }),
  /** HTCondor's state and activity of an attempt's slot, when its machine's policy changes them. */
  message('slot', { key, state: text, activity: text, enteredState: moment, enteredActivity: moment }),
  /**
   * The attempt has ended; it stays at the worker until `forget`. Small streams are attached. `files` is present if all
   * results are already known.
   */
  message('ended', { key, ending, inline: maybe(inline), files: maybe(z.array(outputFile)) }),
  /**
   * The attempt never started here and never will. `claim`: the match was refused; `input`: an input is missing;
   * `behind`: the run before it takes too long.
   */
  message('gone', { key, why: z.enum(['claim', 'input', 'cancelled', 'never-started', 'behind']), message: text }),
  /** Bytes of a stream, starting at `offset`. */
  message('chunk', { key, stream, offset: count }),
  ...followedFiles,
  shellOut,
  shellOver,
  /** A node of a parallel job starts a command at another one of its nodes. */
  message('node-start', { shell: text, key, node: count, command: text }),
  shellIn,
  shellClose,
  ask,
  answer,
  /** Answered by `pong` with the same number; only then does the worker know that the central manager has heard it. */
  message('ping', { n: z.number() }),
  /** The worker is ending: nothing runs there any more, and nothing should be sent. */
  message('bye', { message: text }),
]);
export type FromWorker = Read<typeof fromWorker>;

const fromCentralManager = z.discriminatedUnion('t', [
  message('challenge', { nonce: text, proof: text }),
  message('denied', { message: text }),
  message('welcome', {
    agent: text,
    site: text,
    /** The worker ends its runs after this many seconds without contact to the central manager. */
    lease: amount,
    /** Seconds between pings. */
    ping: z.number().positive(),
  }),
  /** A kind of jobs, with the ad that represents them all when the worker checks a match. */
  message('kind', { id: text, ad }),
  /** A spec that others are derived from. */
  message('base', { id: text, spec: runSpec }),
  message('start', {
    key,
    /**
     * The claim that it runs under. The first start under a claim creates it, and the worker checks the match again. A
     * start that arrives while another attempt runs under the claim waits for that one to end.
     */
    claim: text,
    kind: text,
    size,
    spec: z.union([derivedSpec, runSpec]),
    /** How many seconds this job may run without contact to the central manager. */
    lease: amount,
    /** For a job: what its ad has instead of the ad of its kind (`null`: no such attribute), and the name of its slot. */
    ad: maybe(ad),
    slot: maybe(text),
    /** A node of a parallel job: when everything is there, it waits for `go`. */
    waits: maybe(z.literal(true)),
  }),
  /** All nodes of its job are ready: starts the one that waits under this claim. */
  message('go', { key, claim: text }),
  /** Releases the claim; what is running under it continues. */
  message('release', { claim: text }),
  /** Ends it: as if it had never existed (`remove`), or so that it can continue elsewhere (`vacate`). */
  message('cancel', {
    key,
    how: z.enum(['remove', 'vacate', 'if-not-started']),
    message: text,
    by: maybe(preemptedBy),
  }),
  z.strictObject({ t: z.enum(['suspend', 'resume', 'checkpoint']), key }),
  /** Deletes the attempts, whose results are home. Those still running are ended first. */
  message('forget', { keys }),
  /** Results of an ended attempt were not what was announced, again and again: it runs elsewhere. Only to a worker with HasFalseResults. */
  message('disbelieved', { key, message: text }),
  /**
   * From now on, send what is written to its streams, from these offsets on, and, by a worker with HasStreamResults, the
   * sizes of the files that match these patterns.
   */
  message('follow', { key, stdout: count, stderr: count, files: maybe(texts) }),
  want,
  /** Opens a shell beside a running job, with a command or interactive, until either ends. */
  message('shell', {
    shell: text,
    key,
    command: maybe(text),
    tty: maybe(terminal),
    /** It goes on when the connection breaks: a node of a parallel job has started it. */
    stays: maybe(z.literal(true)),
  }),
  shellIn,
  shellSize,
  shellClose,
  /** What a command says that was started by `node-start`. */
  shellOut,
  shellOver,
  ask,
  answer,
  message('pong', {
    n: z.number(),
    /** Seconds until the next ping, as long as the worker holds nothing; absent: as the welcome said. */
    rest: z.exactOptional(z.number().positive()),
  }),
  /** Take no more jobs, and end when none is left; `now`: vacate the running ones. */
  message('drain', { now: flag, message: text }),
]);
export type FromCentralManager = Read<typeof fromCentralManager>;

/** The messages for the connection itself, for shells beside jobs, and for attempts. */
export type ForLink = Extract<
  FromCentralManager,
  { readonly t: 'challenge' | 'denied' | 'welcome' | 'pong' | 'answer' }
>;
export type ForShells = Extract<FromCentralManager, { readonly shell: string }>;
export type WorkerOrder = Exclude<FromCentralManager, ForLink | ForShells | { readonly t: 'ask' }>;

export const readFromWorker = reader(fromWorker);
export const readFromCentralManager = reader(fromCentralManager);
