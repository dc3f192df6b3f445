import * as z from 'zod';
import type { AttemptKey } from '../job/ids.ts';
import { attemptKey, attemptKeys, attrTexts } from '../job/schema.ts';
import { runSpec, size } from '../pool/wire/wire.ts';
import type { Ending } from '../site/contract.ts';
import { ending } from '../site/shapes.ts';
import { amount, count, maybe, type Read, text } from '../util/schema.ts';
import { hops } from './flock-wire.ts';

/** A job of ours as a partner gets it. */
export const borrowedJob = z.strictObject({
  key: attemptKey,
  partner: text,
  /** The slots that it was granted to, which stand for the partner's machines. */
  worker: text,
  round: count,
  user: text,
  ad: attrTexts,
  size,
  lease: amount,
  spec: runSpec,
  /** Of a job of another pool that we pass on: the pools before us, its home first. */
  path: maybe(hops),
  /** The pools beyond the partner to which it is passed on from there. */
  to: maybe(hops),
});
export type BorrowedJob = Read<typeof borrowedJob>;

const entry = <R extends string, S extends z.core.$ZodLooseShape>(r: R, shape: S) =>
  z.strictObject({ r: z.literal(r), ...shape });

/** What a gateway that borrows promises, written before it is acted upon. */
export const BORROWED_ENTRY = z.discriminatedUnion('r', [
  /** The greatest round given out. */
  entry('n', { round: count }),
  /** Taken from the central manager; the partner may have prepared it. */
  entry('s', { job: borrowedJob }),
  /** It may be running at the partner from now on. */
  entry('c', { key: attemptKey }),
  entry('e', { key: attemptKey, ending, noFiles: maybe(z.literal(true)) }),
  /** It has not run there, and will not. */
  entry('d', { key: attemptKey }),
  entry('f', { keys: attemptKeys }),
]);
export type BorrowedEntry = Read<typeof BORROWED_ENTRY>;

/**
 * `asked`: the partner may have prepared it and cannot run it; `committed`: it may be running there; `ended`: its end is
 * recorded.
 */
export type BorrowedPhase = 'asked' | 'committed' | 'ended';

export interface Borrowed {
  readonly job: BorrowedJob;
  /** When it was granted, by the monotonic clock in milliseconds, in this process. */
  grantedAt?: number;
  /** When the partner was asked to take it, last fetched a piece of an input, or said that it passed it on, by that clock. */
  servedAt?: number;
  /** Bytes of inputs that it has fetched so far. */
  served?: number;
  phase: BorrowedPhase;
  /** The partner has said that it prepared it. */
  prepared?: boolean;
  startedAt?: number;
  suspended?: boolean;
  ending?: Ending;
  noFiles?: boolean;
  /** Both streams, stdout first, if they came with the end. */
  inline?: { readonly stdout: number; readonly stderr: number; readonly bytes: Buffer };
  cancelling?: 'remove' | 'vacate' | 'if-not-started';
  followed?: { stdout: number; stderr: number };
  /** When it was committed by the monotonic clock, in milliseconds, in this process. */
  committedAt?: number;
  /** The host as the partner names it. */
  host?: string;
}

/** Whether its program runs at the partner, or is suspended there. */
export function isRunning({ startedAt, phase }: Borrowed): boolean {
  return phase === 'committed' && startedAt !== undefined;
}

export interface RecoveredBorrowed {
  readonly jobs: Map<AttemptKey, Borrowed>;
  round: number;
}

export function recoverBorrowed(entries: Iterable<BorrowedEntry>): RecoveredBorrowed {
  const recovered: RecoveredBorrowed = { jobs: new Map(), round: 0 };
  const { jobs } = recovered;
  for (const entry of entries) {
    switch (entry.r) {
      case 'n':
        recovered.round = Math.max(recovered.round, entry.round);
        break;
      case 's':
        recovered.round = Math.max(recovered.round, entry.job.round);
        jobs.set(entry.job.key, { job: entry.job, phase: 'asked' });
        break;
      case 'c': {
        const known = jobs.get(entry.key);
        if (known) known.phase = 'committed';
        break;
      }
      case 'e': {
        const known = jobs.get(entry.key);
        if (!known) break;
        known.phase = 'ended';
        known.ending = entry.ending;
        if (entry.noFiles) known.noFiles = true;
        break;
      }
      case 'd':
        jobs.delete(entry.key);
        break;
      case 'f':
        for (const key of entry.keys) jobs.delete(key);
    }
  }
  return recovered;
}

export function* compactedBorrowed({ jobs, round }: RecoveredBorrowed): Generator<BorrowedEntry> {
  yield { r: 'n', round };
  for (const { job, phase, ending: end, noFiles } of jobs.values()) {
    yield { r: 's', job };
    if (phase !== 'asked') yield { r: 'c', key: job.key };
    if (phase === 'ended' && end) yield { r: 'e', key: job.key, ending: end, ...(noFiles ? { noFiles: true } : {}) };
  }
}

/** Their keys. */
export function byPartner(jobs: readonly Borrowed[]): Map<string, AttemptKey[]> {
  const all = new Map<string, AttemptKey[]>();
  for (const { job } of jobs) all.set(job.partner, [...(all.get(job.partner) ?? []), job.key]);
  return all;
}
