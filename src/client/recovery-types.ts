import type { AuditRecord } from '../site/audit.ts';
import type { AskUser } from './types.ts';

/** Whose jobs `recoverAgent` takes over, from which sites. */
export interface RecoverRequest {
  /** Names of configured sites; empty: all of them. */
  readonly sites: readonly string[];
  /** The lost agent's id; by default the only one that the sites hold something of. */
  readonly agent?: string;
  /** Absolute: where the results of jobs go whose own directory is gone. */
  readonly into: string;
  /** Only says what would be done. */
  readonly dryRun?: boolean;
  /** For sites that ask questions at the log-in. */
  readonly ask?: AskUser;
}

/** What was taken over. */
export interface Recovery {
  /** The agent that this state directory serves now. */
  readonly agent: string;
  readonly steps: readonly RecoveryStep[];
}

/** A site that did not answer, or one attempt: left where it is, followed, or held (docs/recovery.md). */
export type RecoveryStep =
  | { readonly site: string; readonly outcome: 'unreachable'; readonly message: string }
  | (RecoveryAttempt & { readonly outcome: 'left' })
  | (RecoveryAttempt & {
      readonly outcome: 'followed' | 'held';
      /** Where its results go, and whether that is another directory than the one it was submitted from. */
      readonly directory: string;
      readonly moved: boolean;
      /** The cluster of the DAG that it is a node of. */
      readonly dag?: number;
    });

interface RecoveryAttempt {
  readonly site: string;
  /** `12.3`. */
  readonly job: string;
  readonly key: string;
  /** What the site says of it. */
  readonly state: AuditRecord['state'];
  readonly message: string;
}
