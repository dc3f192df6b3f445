import type { ClassAd } from '../../classad/api.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import type { AttemptKey } from '../../job/ids.ts';
import type { Ending, Outcome, Report } from '../../site/contract.ts';
import type { AttemptRequest } from '../wire/client-wire.ts';
import type { OutputFile, Size } from '../wire/wire.ts';

/** Jobs that no match can tell apart. */
export interface Autocluster {
  readonly id: string;
  readonly owner: string;
  readonly size: Size;
  readonly texts: AttrTexts;
  readonly ad: ClassAd;
  /** First in, first out within a priority. */
  readonly queue: Attempt[];
  /** What its jobs took of late, seconds, and how many were seen. */
  mean: number;
  seen: number;
}

export type Phase = 'prepared' | 'idle' | 'granted' | 'running' | 'suspended' | 'ended' | 'withdrawn';

/** One attempt, as the central manager knows it. */
export interface Attempt {
  readonly key: AttemptKey;
  /** Whose connection hears of it: a GridManager's identity, or a map's session. */
  readonly client: string;
  request: AttemptRequest;
  kind: Autocluster | undefined;
  /** Order of arrival. */
  order: number;
  phase: Phase;
  /** Where it was granted to: the worker's instance, and that machine's boot. */
  worker?: string;
  boot?: string;
  /** That let the worker in: it is known to be over by whoever issued it. */
  token?: string;
  claim?: string;
  host?: string;
  startedAt?: number;
  ending?: Ending;
  files?: readonly OutputFile[];
  inline?: { readonly stdout: Buffer; readonly stderr: Buffer };
  /** It ended, and its worker died: what is not home is lost. */
  orphan?: boolean;
  cancelling?: 'remove' | 'vacate' | 'if-not-started';
  /** Why it waits, in the last refusal's words. */
  why?: string;
}

/** What a client is told of an attempt. */
export function reportOf(attempt: Attempt): Report {
  const { key } = attempt;
  switch (attempt.phase) {
    case 'prepared':
      return { key, is: 'prepared' };
    case 'idle':
    case 'granted':
      return { key, is: 'queued', ...(attempt.why === undefined ? {} : { why: attempt.why }) };
    case 'suspended':
      return { key, is: 'suspended' };
    case 'running':
      return {
        key,
        is: 'running',
        ...(attempt.host === undefined ? {} : { host: attempt.host }),
        ...(attempt.startedAt === undefined ? {} : { since: attempt.startedAt }),
      };
    case 'ended': {
      const how = { kind: 'by-site', cause: 'vanished', message: '' } as const;
      return {
        key,
        is: 'ended',
        ...(attempt.ending ?? { how }),
        ...(attempt.host === undefined ? {} : { host: attempt.host }),
        ...(attempt.files?.length === 0 ? { noFiles: true } : {}),
      };
    }
    case 'withdrawn':
      return { key, is: 'lost', why: 'it was withdrawn' };
  }
}

/** A job's attempts share its checkpoint: the key without the attempt. */
export function jobOf(key: AttemptKey): string {
  return key.slice(0, key.lastIndexOf('.'));
}

export function unknownKey(key: AttemptKey): Outcome {
  return { ok: false, refusal: { kind: 'gone', code: 'unknown-key', message: `The pool does not know ${key}.` } };
}
