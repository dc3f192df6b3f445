/*
 * The protocol between the gateways of two pools, over a link that only holders of the agreement's key can open. Either
 * side may lend and borrow; each message says by its type whose turn it is.
 *
 *   borrower                           lender
 *   hello(agent)                   ↔   hello(agent)
 *   sync(what it holds)            →
 *                                  ←   list(machines), at each change and every minute
 *   prepare(key, round, job)       →
 *                                  ↔   ask blob, answer: the job's inputs
 *                                  ←   prepared | refused(clause)
 *   commit(key, round)             →
 *                                  ↔   ask inputs, answer: the worker connects and asks for them itself (direct-wire.ts)
 *                                  ←   onward, while a next pool has it and has not started it
 *                                  ←   started, suspended, resumed, chunk, ended | gone
 *   ask direct                     ↔   answer: the worker has connected by itself, and is asked instead (direct-wire.ts)
 *   ask files, ask read            ↔   answer: the results
 *   forget(keys)                   →
 *
 * Every message may be repeated safely: an attempt has the same key on both sides, and each time that the borrower's
 * central manager grants it anew, a greater round. What belongs to another round is ignored.
 */
import * as z from 'zod';
import { MOST_FURTHER } from '../config/agreements.ts';
import { attemptKey as key, attemptKeys as keys, attrTexts as ad } from '../job/schema.ts';
import { directHome, type ResultsAnswer, resultsAnswer, wantedBytes, wantedOutputs } from '../pool/wire/direct-wire.ts';
import { reader } from '../pool/wire/read-message.ts';
import { inline, message, runSpec, size } from '../pool/wire/wire.ts';
import { ending, stream } from '../site/shapes.ts';
import { amount, count, flag, maybe, moment, type Read, text } from '../util/schema.ts';

/** Messages are checked strictly, so whatever an older gateway would refuse increments it, and is not sent to one. */
export const FLOCK_VERSION = 4;
/** The oldest that is spoken. It closes a link with any other version: whoever dials it has to greet it with its own. */
export const OLDEST_FLOCK = 1;

const short = text.max(200);
const sentence = text.max(1000);
const round = count;
/** Kinds of machines in one list. */
export const MOST_KINDS = 64;

/** A pool on the way of a job: its agent, which no two have in common, and what the pool before or after it there calls it. */
export const hop = z.strictObject({
  agent: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/),
});
export type Hop = Read<typeof hop>;
export const hops = z.array(hop).max(MOST_FURTHER);

/** A kind of machines that have something to lend. No job and no user is named. */
export const lentKind = z.strictObject({
  /** Attributes that describe the platform, the same for all machines of the kind. */
  ad,
  /** How many machines have something free. */
  machines: count,
  /** The most that is free on one of them. */
  each: size,
  /** What is lent of all of them together. */
  all: size,
  /** The pools beyond the one that says this, the nearest first, if the machines are the last one's. Since version 4. */
  path: maybe(hops),
});
export type LentKind = Read<typeof lentKind>;

const question = <T extends string, S extends z.core.$ZodLooseShape>(what: T, shape: S) =>
  z.strictObject({ t: z.literal('ask'), id: count, what: z.literal(what), ...shape });

export const flockAsk = z.discriminatedUnion('what', [
  /** A piece of an input, from lender to borrower. */
  question('blob', { key, sha256: short, offset: count, bytes: count }),
  /** An ended attempt's results, from borrower to lender. */
  question('files', { key, outputs: wantedOutputs }),
  question('read', { key, ...wantedBytes }),
  /**
   * The worker that ran it is to bring them itself, to the address of the borrower's gateway that the lender's agreement has:
   * `name` and `secret` let it connect there once. Since version 2. Answered when it is there. `dials` (since version 3): it comes to the
   * lender's gateway instead, and the borrower, which dials that by `name` and `secret`, meets it there.
   */
  question('direct', {
    key,
    name: directHome.shape.name,
    secret: directHome.shape.secret,
    dials: maybe(z.literal(true)),
  }),
  /**
   * From lender to borrower: the worker that is to run it will connect to the borrower's gateway by `name` and `secret`, once, for
   * its inputs. Only of a job whose ad says that the borrower knows this (SERVES_INPUTS).
   */
  question('inputs', {
    key,
    name: z.string().regex(/^inputs\.[\w-]{16}$/),
    secret: directHome.shape.secret,
  }),
]);
export type FlockAsk = Read<typeof flockAsk>;

export type FlockAnswer = ResultsAnswer;

const flockMessage = z.discriminatedUnion('t', [
  message('hello', { version: count, agent: short, name: short }),
  /**
   * What the lender offers now; `refusal`: why it lends nothing, the clause and a sentence. `forwarded` (since version 4): it takes jobs
   * that the borrower passes on for others.
   */
  message('list', {
    kinds: z.array(lentKind).max(MOST_KINDS),
    forwarded: maybe(z.literal(true)),
    refusal: maybe(z.strictObject({ clause: short, message: sentence })),
  }),
  /** All attempts that the borrower has given to this partner, with their rounds; `committed`: it may be running. */
  message('sync', { held: z.array(z.strictObject({ key, round, committed: flag })).max(100_000) }),
  message('prepare', {
    key,
    round,
    /** The user's name at home. */
    user: short,
    ad,
    size,
    lease: amount,
    spec: runSpec,
    /** The pools that it has come through before the one that asks, its home first. Since version 4. */
    path: maybe(hops),
    /** Where it is to be passed on, as the kind of machines said. Since version 4. */
    to: maybe(hops),
  }),
  message('prepared', { key, round }),
  /** It will not run there, whatever was asked before in this round. */
  message('refused', { key, round, clause: short, message: sentence }),
  message('commit', { key, round }),
  message('cancel', { key, round, how: z.enum(['remove', 'vacate', 'if-not-started']), message: sentence }),
  z.strictObject({ t: z.enum(['suspend', 'resume', 'checkpoint']), key, round }),
  message('forget', { keys }),
  message('follow', { key, round, stdout: count, stderr: count }),
  message('started', { key, round, at: moment, host: maybe(short) }),
  z.strictObject({ t: z.enum(['suspended', 'resumed']), key, round }),
  /** It has been passed on, and the next pool has not started it yet: now and then until it starts. Since version 4. */
  message('onward', { key, round }),
  /** `noFiles`: it left nothing to fetch but its streams, which are attached if `inline` is there. */
  message('ended', { key, round, ending, inline: maybe(inline), noFiles: maybe(z.literal(true)) }),
  /** It never ran there and never will. */
  message('gone', { key, round, message: sentence }),
  /** The lender has no record of an attempt that the borrower named. */
  message('unknown', { key, round }),
  message('chunk', { key, round, stream, offset: count }),
  flockAsk,
  resultsAnswer,
  message('ping', { n: count }),
  message('pong', { n: count }),
]);
export type FlockMessage = Read<typeof flockMessage>;
export type Of<T extends FlockMessage['t']> = Extract<FlockMessage, { readonly t: T }>;

export const readFlockMessage = reader(flockMessage);
