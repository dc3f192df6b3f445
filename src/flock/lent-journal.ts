import * as z from 'zod';
import type { AttemptKey } from '../job/ids.ts';
import { attemptKey, attemptKeys } from '../job/schema.ts';
import { type AttemptRequest, attemptRequest } from '../pool/wire/client-wire.ts';
import type { RunSpec } from '../pool/wire/wire.ts';
import type { Report } from '../site/contract.ts';
import { count, maybe, type Read, text } from '../util/schema.ts';
import { hops } from './flock-wire.ts';

const entry = <R extends string, S extends z.core.$ZodLooseShape>(r: R, shape: S) =>
  z.strictObject({ r: z.literal(r), ...shape });

const passage = z.strictObject({
  /** The pools before the partner, the job's home first. */
  path: hops,
  /** The pools to which we pass it on, the next first; none: it runs here. */
  to: hops,
});
/** The way of a job that is, or was, passed on. */
export type Passage = Read<typeof passage>;

/** What a gateway that lends promises, written before it is said. */
export const LENT_ENTRY = z.discriminatedUnion('r', [
  entry('p', { partner: text, round: count, request: attemptRequest, passage: maybe(passage) }),
  entry('c', { key: attemptKey }),
  /** It never ran, and never will. */
  entry('o', { key: attemptKey, message: text }),
  /** Being forgotten: from now on nothing of it is given to the central manager. */
  entry('f', { keys: attemptKeys }),
]);
export type LentEntry = Read<typeof LENT_ENTRY>;

/** `prepared`: nothing runs; `committed`: the central manager has it, or gets it; `gone`: it never ran. */
export type LentPhase = 'prepared' | 'committed' | 'gone';

export interface Lent {
  readonly partner: string;
  readonly round: number;
  readonly request: AttemptRequest & { readonly spec: RunSpec };
  /** Absent: it is the partner's own, and runs here. */
  readonly passage?: Passage;
  phase: LentPhase;
  /** The next pool did not take it: it goes back, for this reason. */
  back?: string;
  /** Why it is gone. */
  message?: string;
  startedAt?: number;
  /** When we learned of that, by the monotonic clock in milliseconds. */
  seenAt?: number;
  suspended?: boolean;
  end?: Extract<Report, { is: 'ended' }>;
  /** Why we ended it, beyond what the central manager can say. */
  stopped?: 'lease' | 'agreement';
  /** When it was prepared, by the monotonic clock in milliseconds, in this process. */
  readonly at: number;
  /** The central manager has been given it. */
  given?: boolean;
}

/** What is over is kept for a partner that does not fetch it for so long, in seconds. */
const KEEP_SECONDS = 7 * 86_400;
/** The lease at home is three times as long as here. */
const LEASES = 3;
/** Twice what the partner waits beyond it, for each pool from here on. */
const MARGIN_SECONDS = 120;

/** Whether what is over here is of no more use: the job runs again elsewhere, or nobody has fetched it for too long. */
export function isStale({ request, end, passage }: Lent, silence: number, now: number): boolean {
  const margin = MARGIN_SECONDS * (1 + (passage?.to.length ?? 0));
  return silence > LEASES * request.lease + margin || now - (end?.endedAt ?? now) > KEEP_SECONDS;
}

/** Whether it is to run in another pool than ours. */
export function isPassedOn({ passage }: Pick<Lent, 'passage'>): boolean {
  return passage !== undefined && passage.to.length > 0;
}

export interface RecoveredLent {
  readonly jobs: Map<AttemptKey, Lent>;
  /** Not known to be forgotten by the central manager yet. */
  readonly forgetting: Set<AttemptKey>;
}

export function recoverLent(entries: Iterable<LentEntry>, now: number): RecoveredLent {
  const jobs = new Map<AttemptKey, Lent>();
  const forgetting = new Set<AttemptKey>();
  for (const entry of entries) {
    if (entry.r === 'p') {
      const { partner, round, request, passage } = entry;
      if ('base' in request.spec) continue;
      forgetting.delete(request.key);
      jobs.set(request.key, {
        partner,
        round,
        request: { ...request, spec: request.spec },
        ...(passage ? { passage } : {}),
        phase: 'prepared',
        at: now,
      });
    } else if (entry.r === 'f') {
      for (const key of entry.keys) {
        jobs.delete(key);
        forgetting.add(key);
      }
    } else {
      const known = jobs.get(entry.key);
      if (!known) continue;
      known.phase = entry.r === 'c' ? 'committed' : 'gone';
      if (entry.r === 'o') known.message = entry.message;
    }
  }
  return { jobs, forgetting };
}

export function* compactedLent({ jobs, forgetting }: RecoveredLent): Generator<LentEntry> {
  for (const { partner, round, request, passage, phase, message = '' } of jobs.values()) {
    yield { r: 'p', partner, round, request, ...(passage ? { passage } : {}) };
    if (phase !== 'prepared') yield { r: 'c', key: request.key };
    if (phase === 'gone') yield { r: 'o', key: request.key, message };
  }
  if (forgetting.size > 0) yield { r: 'f', keys: [...forgetting] };
}
