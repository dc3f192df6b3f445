import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Site } from './contract.ts';

/** A Site with the additional operations of `gryphus site audit` and `gryphus site test`. */
export interface AuditableSite extends Site {
  /** Everything that the site holds under this agent's name. */
  audit(): Promise<SiteAudit>;
  /** What is recorded there of the jobs of these attempts; absent: the site keeps no such records. */
  recall?(keys: readonly AttemptKey[]): Promise<readonly RecalledAttempt[]>;
  /** Absent: the site keeps no such records. */
  past?(): Promise<SitePast>;
  /** Removes jobs from its queue by their tags; absent: it has none of its own. Rejects if its queue does not answer. */
  prune?(tags: readonly string[]): Promise<void>;
  /** A check-up, step by step. */
  test(): Promise<readonly SiteStep[]>;
}

/** Everything that a site holds for an agent: records, jobs in its queue by tag, content. */
export interface SiteAudit {
  readonly records: readonly AuditRecord[];
  readonly queued: readonly AuditJob[];
  /** Why the queue could not be queried; `queued` is then meaningless. */
  readonly queueError: string | undefined;
  readonly content: { readonly files: number; readonly kb: number };
  /** What other agents have there. */
  readonly others: readonly OtherAgent[];
}

/** Attempts of one agent; times in Unix seconds. */
export interface OtherAgent {
  readonly agent: string;
  readonly attempts: number;
  /** How many of their programs have ended. */
  readonly ended: number;
  /** When the first and the last of them were prepared. */
  readonly oldest: number;
  readonly newest: number;
}

export interface AuditRecord {
  readonly key: AttemptKey;
  readonly submission: number;
  readonly batchId: string | undefined;
  readonly state: 'prepared' | 'submitted' | 'started' | 'ended' | 'fenced' | 'cancelled';
}

export interface AuditJob {
  readonly tag: string;
  /** Undefined if the tag names no attempt: an element of an array whose map is lost has `TAG[INDEX]`. */
  readonly key: AttemptKey | undefined;
  readonly submission: number;
  readonly batchId: string;
  /** The batch system still lists it, but says that it has ended. */
  readonly over: boolean;
}

/** What a site knows of an agent's past. */
export interface SitePast {
  /** Of the last state directory that served the agent there; 0: none so far. */
  readonly epoch: number;
  /** The last cluster id that the site was told of; 0: none. Any job there could have written it. */
  readonly cluster: number;
}

/** An attempt as its site's record describes its job. Anything there may have been written by the job itself. */
export interface RecalledAttempt {
  readonly key: AttemptKey;
  /** When it was prepared, Unix seconds. */
  readonly prepared: number;
  /** The job's ad, but for its environment and attributes for the agent's own use. */
  readonly attrs: AttrTexts;
  readonly env: Readonly<Record<string, string>>;
}

/** One step of a site's check-up. */
export interface SiteStep {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
  /** What to do if the step fails. */
  readonly remedy?: string;
}
