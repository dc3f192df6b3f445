/*
 * What a worker and the central manager say to each other. The worker dials; whoever has its connection (a unix socket, a TLS
 * port, an ssh forward, files in a mailbox) hands both sides a duplex stream, and knows nothing of what is said on it.
 *
 *   worker                             central manager
 *   hello(token, instance, nonce)  →
 *                                  ←   challenge(nonce, the central manager's proof)
 *   proof(ad, what it holds)       →
 *                                  ←   welcome(leases) | denied(words)
 *   ad, started, ended, gone, …    ↔   start, cancel, forget, follow, …
 *
 * Every message is safe to repeat: attempts are named by their keys, and after each new connection the worker says all
 * that it holds and the central manager sends again what it does not find there.
 */
import * as z from 'zod';
import {
  amount,
  attemptKey as key,
  attemptKeys as keys,
  attrTexts as ad,
  count,
  ending,
  flag,
  inputFile,
  maybe,
  moment,
  oddOutput,
  program,
  type Read,
  stream,
  text,
  texts,
} from '../../site/shapes.ts';
import { reader } from './read-message.ts';

export const WIRE_VERSION = 1;

/** Cores, MB of memory, KB of disk and GPUs: what a slot is made of and a job asks for. */
export const size = z.strictObject({ cpus: amount, memoryMb: amount, diskKb: amount, gpus: amount });
export type Size = Read<typeof size>;

/** One attempt, as much as a worker needs to run it. */
export const runSpec = program.extend({
  /** Seconds that it may run; the worker ends it after. */
  walltimeSeconds: maybe(amount),
  /** The signal that asks it to end; default SIGTERM. */
  killSignal: maybe(text),
  /** Seconds from that signal until SIGKILL. */
  vacateSeconds: maybe(amount),
});
export type RunSpec = Read<typeof runSpec>;

/** A run that differs from another in its arguments, and in what it finds in its directory beside the other's inputs. */
export const derivedSpec = z.strictObject({ base: text, args: texts, inputs: maybe(z.array(inputFile)) });
export type DerivedSpec = Read<typeof derivedSpec>;

export function derived(base: RunSpec, { args, inputs }: DerivedSpec): RunSpec {
  return { ...base, args, ...(inputs === undefined ? {} : { inputs: [...base.inputs, ...inputs] }) };
}

/** What a worker says of an attempt that it holds. */
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
  /** Permission bits that the job chose for it. */
  mode: maybe(count.max(0o777)),
  /** Given when asked for. */
  sha256: maybe(text),
});
export type OutputFile = Read<typeof outputFile>;

/** The terminal of whoever opened a shell. */
export const terminal = z.strictObject({ rows: count, cols: count, term: text });
export type Terminal = Read<typeof terminal>;

/** What a running attempt's processes take now. */
export const runUsage = z.strictObject({
  key,
  /** Of the processes that live now and of their children that ended, user and system together. */
  cpuSeconds: amount,
  rssKb: amount,
  processes: count,
});
export type RunUsage = Read<typeof runUsage>;

/** How many of the bytes that come along are of which stream: stdout's are first. */
export const inline = z.strictObject({ stdout: count, stderr: count });

export const message = <T extends string, S extends z.core.$ZodLooseShape>(t: T, shape: S) =>
  z.strictObject({ t: z.literal(t), ...shape });
const question = <T extends string, S extends z.core.$ZodLooseShape>(what: T, shape: S) =>
  z.strictObject({ t: z.literal('ask'), id: count, what: z.literal(what), ...shape });

/** A question with one answer. */
const ask = z.discriminatedUnion('what', [
  /** Bytes of an input, worker to central manager, only of what was granted to it. */
  question('blob', { key, sha256: text, offset: count, bytes: count }),
  /** An ended attempt's results (`new`: what was not there at the start). */
  question('files', { key, outputs: z.union([z.literal('new'), texts]), digests: flag }),
  /** Bytes of `stdout`, `stderr` or `work/NAME`. */
  question('read', { key, path: text, offset: count, bytes: count }),
  /** What running attempts take. */
  question('usage', { keys }),
  /** The answer (PEM) to a request for a proxy, worker to central manager. */
  question('proxy', { key, name: text, request: text }),
]);
export type Ask = Read<typeof ask>;

/** The answer's bytes are the content that was asked for; fewer than asked: it ends there. */
const answer = z.discriminatedUnion('ok', [
  message('answer', {
    id: count,
    ok: z.literal(true),
    files: maybe(z.array(outputFile)),
    missing: maybe(texts),
    odd: maybe(z.array(oddOutput)),
    usage: maybe(z.array(runUsage)),
  }),
  message('answer', { id: count, ok: z.literal(false), message: text }),
]);
export type Answer = Read<typeof answer>;

/** What a shell beside a job writes, and how it ended (ssh's words: 255 where it never was). */
export const shellOut = message('shell-out', { shell: text, stream });
export const shellOver = message('shell-over', { shell: text, status: z.int(), message: maybe(text) });

const fromWorker = z.discriminatedUnion('t', [
  message('hello', {
    version: z.number(),
    token: text,
    /** Made once for each directory that a worker works in: two workers with one token are told apart. */
    instance: z.string().min(1),
    nonce: text,
  }),
  message('proof', {
    proof: text,
    ad,
    size,
    /** The machine's boot: what it had on disk before another boot may be gone. */
    boot: text,
    attempts: z.array(heldAttempt),
  }),
  /** What changed in its ad: load, time to live; with its size, where that is another now. */
  message('ad', { ad, size: maybe(size) }),
  message('started', { key, at: moment }),
  z.strictObject({ t: z.enum(['suspended', 'resumed']), key }),
  /**
   * It ended; it stays at the worker until `forget`. Small streams come along. `files` is there when all results are known
   * already.
   */
  message('ended', { key, ending, inline: maybe(inline), files: maybe(z.array(outputFile)) }),
  /**
   * It never started here and never will. `claim`: the match itself was refused; `input`: what it needs is not there;
   * `behind`: what was to end before it takes long.
   */
  message('gone', { key, why: z.enum(['claim', 'input', 'cancelled', 'never-started', 'behind']), message: text }),
  /** Bytes of a stream from `offset` on. */
  message('chunk', { key, stream, offset: count }),
  shellOut,
  shellOver,
  ask,
  answer,
  /** Answered by `pong` with the same number: only then the worker knows that the central manager heard it. */
  message('ping', { n: z.number() }),
  /** It ends now: nothing runs here any more, nothing is to be sent. */
  message('bye', { message: text }),
]);
export type FromWorker = Read<typeof fromWorker>;

/** Bytes for a shell; `end`: no more will come. */
export const shellIn = message('shell-in', { shell: text, end: flag });
/** Its terminal's window has another size now. */
export const shellSize = message('shell-size', { shell: text, rows: count, cols: count });
export const shellClose = message('shell-close', { shell: text });

const fromCentralManager = z.discriminatedUnion('t', [
  message('challenge', { nonce: text, proof: text }),
  message('denied', { message: text }),
  message('welcome', {
    agent: text,
    site: text,
    /** Seconds without the central manager after which the worker ends what it runs. */
    lease: amount,
    /** Seconds between pings. */
    ping: z.number().positive(),
  }),
  /** A kind of jobs: the ad that stands for all of them in the worker's own check of a match. */
  message('kind', { id: text, ad }),
  /** A run that others are derived from. */
  message('base', { id: text, spec: runSpec }),
  message('start', {
    key,
    /**
     * The claim that it runs under. The first start of a claim makes it: the worker checks the match again. One that
     * comes while another runs under it waits for that one's end.
     */
    claim: text,
    kind: text,
    size,
    spec: z.union([derivedSpec, runSpec]),
    /** Seconds that this job may be without the central manager. */
    lease: amount,
    /** Of a job: its own ad, and the slot's name. */
    ad: maybe(ad),
    slot: maybe(text),
  }),
  /** The claim is given back; what runs under it runs on. */
  message('release', { claim: text }),
  /** Ends it: as if it had never been (`remove`), or so that it can go on elsewhere (`vacate`). */
  message('cancel', { key, how: z.enum(['remove', 'vacate', 'if-not-started']), message: text }),
  z.strictObject({ t: z.enum(['suspend', 'resume']), key }),
  /** The results are home: nothing is kept. What is still there under the key is ended first. */
  message('forget', { keys }),
  /** From now on, send what is written to its streams, from these bytes on. */
  message('follow', { key, stdout: count, stderr: count }),
  /** A shell beside a running job, with a command or to be typed into, until one of the two ends. */
  message('shell', { shell: text, key, command: maybe(text), tty: maybe(terminal) }),
  shellIn,
  shellSize,
  shellClose,
  ask,
  answer,
  message('pong', { n: z.number() }),
  /** Takes no more jobs; `now`: those that run are vacated. It ends when none is left. */
  message('drain', { now: flag, message: text }),
]);
export type FromCentralManager = Read<typeof fromCentralManager>;

/** What of it is for the connection itself, for shells beside jobs, and for what runs. */
export type ForLink = Extract<
  FromCentralManager,
  { readonly t: 'challenge' | 'denied' | 'welcome' | 'pong' | 'answer' }
>;
export type ForShells = Extract<FromCentralManager, { readonly shell: string }>;
export type Order = Exclude<FromCentralManager, ForLink | ForShells | { readonly t: 'ask' }>;

export const readFromWorker = reader(fromWorker);
export const readFromCentralManager = reader(fromCentralManager);
