import type { JobId } from '../../job/ids.ts';

/** A credential as it is found now. All times are Unix seconds, all lengths seconds. */
export interface Watched {
  /** The name that sites and jobs use. */
  readonly name: string;
  /** For people: `X.509 proxy`, `SSH certificate`, `allocation`. */
  readonly what: string;
  readonly start?: number;
  /** `undefined`: it has no end that is known. */
  readonly end?: number;
  /** Differs whenever its content does (a digest, never a secret). */
  readonly version: string;
  /** Why it cannot be used whatever the time: the file is gone, others can read it, the log-in was lost. One sentence. */
  readonly problem?: string;
  /** The agent can renew it by itself. */
  readonly renews: boolean;
  /** Jobs are held when it ends. False for what only feeds others: a long proxy in a MyProxy server. */
  readonly holds: boolean;
  /** Command lines that make it fresh, for messages. */
  readonly type: readonly string[];
}

/** A job that uses credentials and has not ended. */
export interface WatchedJob {
  readonly id: JobId;
  readonly site: string;
  readonly needs: readonly string[];
  /** `waiting`: not at its site, or about to be; `there`: the site has it; `held`: held with our code (CREDENTIAL_HOLD). */
  readonly where: 'waiting' | 'there' | 'held';
}

/** A credential's copy at a site, as it was when it was last sent. */
export interface RemoteCopy {
  readonly credential: string;
  readonly site: string;
  readonly version: string;
}

export interface WatchConfig {
  /** Alarms so long before the end. */
  readonly alarms: readonly number[];
  /** Jobs are held so long before the end (never more than a tenth of its life). */
  readonly holdBefore: number;
  /** Clocks may differ by so much: a credential that starts later than now + skew cannot be used yet. */
  readonly skew: number;
  /** A credential that cannot be read is given so long to come back (it may be being written) before jobs are held. */
  readonly grace: number;
  /** Renewed so long before the end; at half of its life when that is less. */
  readonly renewBefore: number;
  /** First and longest pause between failed renewals. */
  readonly retry: number;
  readonly longestRetry: number;
  /** A renewal that has said nothing for so long is taken for lost. */
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

/** HTCondor's HoldReasonCode CorruptedCredential (manual, "Hold Reason Codes"); HTCondor gives no sub codes, these are ours. */
export const CREDENTIAL_HOLD = { code: 4, ended: 1, unusable: 2, early: 3 } as const;

/** What the watch remembers of one credential from one look to the next; plain data, kept with the state. */
export interface Memory {
  /** Keys of the alarms that were given, the latest last. */
  readonly given: readonly string[];
  /** Version seen last when it could be used. */
  readonly good?: string;
  readonly brokenSince?: number;
  /** Its users were told that it cannot be used; they are owed the good news. */
  readonly fell: boolean;
  readonly renewal: Renewal;
}

export interface Renewal {
  readonly failures: number;
  /** Not before this. */
  readonly next?: number;
  /** Under way since. */
  readonly since?: number;
  /** Why the last one failed. */
  readonly problem?: string;
}

export type Memories = Readonly<Record<string, Memory>>;

/** As `notify` wants it: one message for all jobs of one credential. */
export interface News {
  /** An equal key is never given twice. */
  readonly key: string;
  readonly news: 'ending' | 'ended' | 'broken' | 'fresh' | 'renewal-failing';
  readonly name: string;
  readonly what: string;
  readonly now: number;
  readonly end?: number;
  readonly problem?: string;
  readonly jobs: readonly JobId[];
  readonly sites: readonly string[];
  readonly type: readonly string[];
  /** Its end holds jobs. */
  readonly holds: boolean;
}

export type Action =
  | { readonly do: 'alarm'; readonly news: News }
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
