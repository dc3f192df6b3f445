import type { QueueEvent } from '../job/events.ts';
import type {
  Action,
  ActionRequest,
  ActionResult,
  AskUser,
  AuditEntry,
  CheckStep,
  DaemonStatus,
  DryRun,
  JobView,
  OpenOptions,
  QueryRequest,
  Selection,
  SiteStatus,
  Submitted,
  SubmitRequest,
  TailRequest,
  Totals,
  WaitRequest,
  Why,
} from './types.ts';

/** All that the command line can do, for a program. */
export interface GryphusApi {
  /** Acknowledged when the jobs are on disk (invariant 1). */
  submit(request: SubmitRequest): Promise<Submitted>;
  query(request?: QueryRequest): AsyncIterable<JobView>;
  /** Ended jobs, the newest first. */
  history(request?: QueryRequest): AsyncIterable<JobView>;
  totals(selection?: Selection): Promise<Totals>;
  act(action: Action, request: ActionRequest): Promise<readonly ActionResult[]>;
  /** Sets attributes (ClassAd expression texts) of the selected jobs. */
  edit(selection: Selection, set: Readonly<Record<string, string>>): Promise<readonly ActionResult[]>;
  /** False when the time ran out first. */
  wait(request: WaitRequest): Promise<boolean>;
  tail(request: TailRequest): AsyncIterable<Uint8Array>;
  why(selection: Selection): AsyncIterable<Why>;
  /** From now on, or from a cursor of an earlier event. */
  events(options?: { readonly from?: string; readonly signal?: AbortSignal }): AsyncIterable<QueueEvent>;
  sites(): Promise<readonly SiteStatus[]>;
  testSite(name: string, ask?: AskUser): AsyncIterable<CheckStep>;
  login(site: string, ask: AskUser): Promise<void>;
  audit(site: string): Promise<readonly AuditEntry[]>;
  settle(site: string, key: string, how: 'adopt' | 'clean'): Promise<void>;
  status(): Promise<DaemonStatus>;
  close(): Promise<void>;
}

/** Static entry points; dryRun needs no daemon and touches nothing. */
export interface GryphusStatics {
  open(options?: OpenOptions): Promise<GryphusApi>;
  dryRun(request: SubmitRequest): Promise<DryRun>;
  /** Starts the Scheduler and its Redis, or finds them running. */
  up(options?: OpenOptions): Promise<DaemonStatus>;
  /** Ends them; jobs at sites run on. */
  down(options?: OpenOptions): Promise<DaemonStatus>;
}
export declare const Gryphus: GryphusStatics;
