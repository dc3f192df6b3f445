/*
 * What a partner's gateway (src/flock/) and the worker that has one of its jobs say to each other, if one of them can dial
 * the other's side: the inputs or the results of that one attempt, and nothing else. Both sides may be hostile.
 *
 *   gateway                            worker
 *                                  ←   dials; TLS by a key for this attempt and this connection
 *   answer                         ↔   input: before its start
 *   files, read                    ↔   answer: of what it left, by another connection
 */
import * as z from 'zod';
import type { AttrTexts } from '../../job/attrs.ts';
import { oddOutput } from '../../site/shapes.ts';
import { count, flag, maybe, type Read, text } from '../../util/schema.ts';
import { reader } from './read-message.ts';

/** The largest parts of a frame, in bytes: more means a broken or hostile partner. */
export const FRAME_LIMITS = { json: 1 << 20, bytes: 2 << 20 } as const;
/** The most bytes of one answer. */
export const MOST_PIECE = 1 << 20;
/** Questions that may wait for an answer at once. */
export const MOST_QUESTIONS = 256;
/** With more bytes than this waiting to be read by the other side, no further answer is made. */
export const BACKLOG = 8 << 20;
export const MOST_FILES = 10_000;

/** Where a worker brings the results of an attempt, or pulls its inputs: the name and the secret by which it may connect there, once. */
export const directHome = z.strictObject({
  host: text.max(255),
  port: count.max(65_535),
  name: text.max(64),
  /** 32 bytes in hexadecimal. */
  secret: z.string().regex(/^[0-9a-f]{64}$/),
});
export type DirectHome = Read<typeof directHome>;

/** `new`: files that were not there at the start. */
export const wantedOutputs = z.union([z.literal('new'), z.array(text.max(4096)).max(MOST_FILES)]);
/** Bytes of `stdout`, `stderr` or `work/NAME`. */
export const wantedBytes = { path: text.max(4200), offset: count, bytes: count };

const question = z.discriminatedUnion('t', [
  z.strictObject({ t: z.literal('files'), id: count, outputs: wantedOutputs }),
  z.strictObject({ t: z.literal('read'), id: count, ...wantedBytes }),
]);
export type ResultsQuestion = Read<typeof question>;

/** A piece of an input, which is known by its SHA-256. */
export const wantedInput = { sha256: text.max(200), offset: count, bytes: count };
const inputQuestion = z.strictObject({ t: z.literal('input'), id: count, ...wantedInput });
export type InputQuestion = Read<typeof inputQuestion>;

/**
 * The answer to a worker's 'partner_inputs': where it can pull the inputs that its job's ad calls late; without `to`,
 * all of them are at the lender's gateway now.
 */
export const inputsAt = z.strictObject({ to: maybe(directHome) });
export type InputsAt = Read<typeof inputsAt>;

/** In a borrowed job's ad for the lender's workers: the digests of inputs that are not at the lender's gateway, as one string. */
export const LATE_INPUTS = 'FlockLateInputs';

/** Those digests. `own`: what the job's ad has instead of the ad of its kind. */
export function lateInputs(kind: AttrTexts, own: AttrTexts = {}): ReadonlySet<string> {
  return new Set({ ...kind, ...own }[LATE_INPUTS]?.match(/[0-9a-f]{64}/g));
}

const outputFile = z.strictObject({
  name: text.max(4096),
  bytes: count,
  executable: flag,
  mode: maybe(count.max(0o777)),
  sha256: maybe(z.string().regex(/^[0-9a-f]{64}$/)),
});

/** The bytes of an answer to `read` and to `input` are the wanted ones; fewer at the end of the file. */
export const resultsAnswer = z.discriminatedUnion('ok', [
  z.strictObject({
    t: z.literal('answer'),
    id: count,
    ok: z.literal(true),
    files: maybe(z.array(outputFile).max(MOST_FILES)),
    missing: maybe(z.array(text.max(4096)).max(MOST_FILES)),
    odd: maybe(z.array(oddOutput).max(MOST_FILES)),
  }),
  /** `refused`: asking again would be in vain. Said by gateways only, since version 4 of their protocol, of jobs that were passed on. */
  z.strictObject({
    t: z.literal('answer'),
    id: count,
    ok: z.literal(false),
    message: text.max(1000),
    refused: maybe(z.literal(true)),
  }),
]);
export type ResultsAnswer = Read<typeof resultsAnswer>;

export const readResultsQuestion = reader(question);
export const readInputQuestion = reader(inputQuestion);
export const readResultsAnswer = reader(resultsAnswer);
