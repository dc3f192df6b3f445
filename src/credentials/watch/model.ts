import * as z from 'zod';
import type { JobId } from '../../job/ids.ts';

/** The current state of a credential. All times are Unix seconds, all durations seconds. */
export interface Watched {
  /** The name by which sites and jobs refer to it. */
  readonly name: string;
  /** For display: `X.509 proxy`, `SSH certificate`, `allocation`. */
  readonly what: string;
  readonly start?: number;
  /** `undefined` if no end is known. */
  readonly end?: number;
  /** Changes whenever the content does (a digest, never a secret). */
  readonly version: string;
  /** Why it cannot be used at any time: the file is gone, others can read it, the log-in was lost. One sentence. */
  readonly problem?: string;
  /** Whether the agent can renew it without the user. */
  readonly renews: boolean;
  /**
   * Whether jobs are held when it ends. False if it only feeds another one, such as a long proxy in a MyProxy server.
   */
  readonly holds: boolean;
  /** Commands that renew it, for messages. */
  readonly type: readonly string[];
}

/** An unfinished job that uses credentials. */
export interface WatchedJob {
  readonly id: JobId;
  readonly site: string;
  readonly needs: readonly string[];
  /**
   * `waiting`: not at its site yet, or about to be sent; `there`: at the site; `held`: held with our code
   * (CREDENTIAL_HOLD).
   */
  readonly where: 'waiting' | 'there' | 'held';
}

/** A credential's copy at a site, as last sent. */
export interface RemoteCopy {
  readonly credential: string;
  readonly site: string;
  readonly version: string;
}

export interface WatchConfig {
  /** How long before the end to warn. */
  readonly alarms: readonly number[];
  /** How long before the end to hold jobs (never more than a tenth of its life). */
  readonly holdBefore: number;
  /** How far clocks may differ: a credential that starts later than now + skew cannot be used yet. */
  readonly skew: number;
  /** How long an unreadable credential may take to come back before jobs are held; it may be being rewritten. */
  readonly grace: number;
  /** How long before the end to renew, or at half of its life if that is less. */
  readonly renewBefore: number;
  /** The first and the longest pause between failed renewals. */
  readonly retry: number;
  readonly longestRetry: number;
  /** How long a renewal may stay silent before it counts as lost. */
  readonly renewTimeout: number;
}

export const DEFAULT_WATCH: WatchConfig = {
  alarms: [24 * 3600, 6 * 3600, 3600],
  holdBefore: 60,
  skew: 300,
  grace: 30,
  renewBefore: 24 * 3600,
  retry: 60,
  longestRetry: 3600,
  renewTimeout: 600,
};

/**
 * HTCondor's HoldReasonCode CorruptedCredential (manual, "Hold Reason Codes"); HTCondor defines no subcodes, so these
 * are ours.
 */
export const CREDENTIAL_HOLD = { code: 4, ended: 1, unusable: 2, early: 3 } as const;

/** What the watch remembers about a credential between two looks; plain data, saved with the state. */
const RENEWAL = z
  .object({
    failures: z.number(),
    /** The earliest time of the next attempt. */
    next: z.number().exactOptional(),
    /** When the current attempt started. */
    since: z.number().exactOptional(),
    /** Why the last attempt failed. */
    problem: z.string().exactOptional(),
  })
  .readonly();
export type Renewal = z.infer<typeof RENEWAL>;

const MEMORY = z
  .object({
    /** Keys of the warnings given so far, the latest last. */
    given: z.array(z.string()).readonly(),
    /** The last version seen usable. */
    good: z.string().exactOptional(),
    brokenSince: z.number().exactOptional(),
    /** Its users were told that it cannot be used, so they must be told when it can be again. */
    fell: z.boolean(),
    renewal: RENEWAL,
  })
  .readonly();
export type Memory = z.infer<typeof MEMORY>;

/** By credential. */
export const MEMORIES = z.record(z.string(), MEMORY).readonly();
export type Memories = z.infer<typeof MEMORIES>;

/** What to tell the user about a credential: one message for all its jobs. */
export interface CredentialNews {
  /** The same key is never sent twice. */
  readonly key: string;
  readonly news: 'ending' | 'ended' | 'broken' | 'fresh' | 'renewal-failing';
  /** The credential's name for users, and its kind: `jane`, `X.509 proxy`. */
  readonly name: string;
  readonly what: string;
  /** Unix seconds. */
  readonly now: number;
  readonly end?: number;
  /** One sentence: what is wrong with it, or why renewal failed. */
  readonly problem?: string;
  readonly jobs: readonly JobId[];
  readonly sites: readonly string[];
  /** Commands to type, in the order to try them. */
  readonly type: readonly string[];
  /** False if it only serves to renew another credential: its end holds no job. */
  readonly holds: boolean;
}

export type CredentialAction =
  | { readonly do: 'alarm'; readonly news: CredentialNews }
  | {
      readonly do: 'hold';
      readonly credential: string;
      readonly jobs: readonly JobId[];
      readonly code: number;
      readonly subCode: number;
      readonly reason: string;
    }
  | { readonly do: 'release'; readonly jobs: readonly JobId[]; readonly reason: string }
  | { readonly do: 'renew'; readonly credential: string }
  | { readonly do: 'refresh'; readonly credential: string; readonly site: string; readonly version: string };
