/**
 * One event of a job's user log (HTCondor manual, "Job Event Log Codes"). Each text is one line: line ends and other
 * control characters become blanks when written.
 */
export type UserLogEvent = UserLogStamp & UserLogBody;

export interface UserLogStamp {
  readonly cluster: number;
  readonly proc: number;
  /** 0 by default. */
  readonly subproc?: number;
  /** Unix milliseconds. */
  readonly at: number;
}

export type UserLogBody =
  /** 000; the notes are `submit_event_notes`, or those of a DAG node. */
  | { readonly type: 'submit'; readonly host: string; readonly notes?: string; readonly userNotes?: string }
  /** 001; for a grid job, the host is its resource. `props`: attribute names and expression texts. */
  | { readonly type: 'execute'; readonly host: string; readonly slot?: string; readonly props?: Properties }
  /** 003; it goes on. */
  | { readonly type: 'checkpointed'; readonly runRemote: CpuTime; readonly runLocal: CpuTime; readonly sent: number }
  /** 004; before a hold (code: its HoldReasonCode), a removal (1023) or a vacation (1022), or between two attempts. */
  | ({ readonly type: 'evicted'; readonly checkpointed?: 1 } & Partial<Code> &
      Spent & { readonly reason?: string; readonly resources?: Resources })
  /** 004 with "terminated and was requeued": a policy asked for another attempt. */
  | ({ readonly type: 'requeued'; readonly reason?: string; readonly resources?: Resources } & Spent & LoggedEnding)
  /** 005 */
  | ({ readonly type: 'terminated'; readonly resources?: Resources } & Spent & SpentInAll & LoggedEnding)
  /** 006; KB, MB, KB, KB. */
  | {
      readonly type: 'image-size';
      readonly sizeKb: number;
      readonly memoryMb?: number;
      readonly residentKb?: number;
      readonly proportionalKb?: number;
    }
  /** 007 */
  | { readonly type: 'shadow-exception'; readonly message: string; readonly sent: number; readonly received: number }
  /** 008 */
  | { readonly type: 'generic'; readonly text: string }
  /** 009 */
  | { readonly type: 'aborted'; readonly reason?: string }
  /** 010 */
  | { readonly type: 'suspended'; readonly processes: number }
  /** 011 */
  | { readonly type: 'unsuspended' }
  /** 012 */
  | ({ readonly type: 'held'; readonly reason: string } & Code)
  /** 013 */
  | { readonly type: 'released'; readonly reason?: string }
  /** 014; the subproc is the node's number. */
  | {
      readonly type: 'node-execute';
      readonly node: number;
      readonly host: string;
      readonly slot?: string;
      readonly props?: Properties;
    }
  /** 015 */
  | ({ readonly type: 'node-terminated'; readonly node: number } & Spent & SpentInAll & LoggedEnding)
  /** 016 */
  | ({ readonly type: 'post-script'; readonly node?: string } & ScriptEnding)
  /** 021 */
  | ({
      readonly type: 'remote-error';
      readonly daemon: string;
      readonly host: string;
      readonly message: string;
    } & Partial<Code>)
  /** 022 */
  | { readonly type: 'disconnected'; readonly reason: string; readonly host: string; readonly address: string }
  /** 023 */
  | { readonly type: 'reconnected'; readonly host: string; readonly address: string; readonly starter: string }
  /** 024 */
  | { readonly type: 'reconnect-failed'; readonly reason: string; readonly host: string }
  /** 025 and 026 */
  | { readonly type: 'resource-up' | 'resource-down'; readonly resource: string }
  /** 027 */
  | { readonly type: 'grid-submit'; readonly resource: string; readonly gridJobId: string }
  /** 028; follows the event to which it adds details. */
  | { readonly type: 'ad-information'; readonly ad: Properties }
  /** 029 and 030 */
  | { readonly type: 'status-unknown' | 'status-known' }
  /** 031 and 032 */
  | { readonly type: 'stage-in' | 'stage-out' }
  /** 033; expression texts. */
  | { readonly type: 'attribute-changed'; readonly name: string; readonly from: string; readonly to: string }
  | { readonly type: 'attribute-set'; readonly name: string; readonly to: string }
  /** 034 */
  | { readonly type: 'pre-skip'; readonly node: string }
  /** 035; a cluster whose procs are made later. */
  | { readonly type: 'cluster-submit'; readonly host: string; readonly notes?: string }
  /** 036 */
  | { readonly type: 'cluster-remove'; readonly materialized: number; readonly items: number; readonly end: string }
  /** 037 and 038 */
  | { readonly type: 'factory-paused'; readonly reason: string; readonly code: number }
  | { readonly type: 'factory-resumed'; readonly reason: string }
  /** 040; `phase` is one of HTCondor's six phrases, such as `Started transferring input files`. */
  | { readonly type: 'file-transfer'; readonly phase: string; readonly queuedSeconds?: number; readonly host?: string }
  /** Any other number: the lines as written, the first without its stamp. */
  | { readonly type: 'other'; readonly number: number; readonly lines: readonly string[] };

export type Properties = readonly (readonly [name: string, expression: string])[];

export interface Code {
  readonly code: number;
  readonly subcode: number;
}

/** CPU time in seconds. */
export interface CpuTime {
  readonly user: number;
  readonly system: number;
}

/** In this run, in bytes. */
export interface Spent {
  readonly runRemote: CpuTime;
  readonly runLocal: CpuTime;
  readonly sent: number;
  readonly received: number;
}

/** In all runs. */
export interface SpentInAll {
  readonly totalRemote: CpuTime;
  readonly totalLocal: CpuTime;
  readonly totalSent: number;
  readonly totalReceived: number;
}

/** Either `exitCode` or `signal`; `core` is the core file's path. */
export type LoggedEnding =
  | { readonly exitCode: number; readonly signal?: never; readonly core?: never }
  | { readonly signal: number; readonly core?: string; readonly exitCode?: never };

export type ScriptEnding =
  | { readonly exitCode: number; readonly signal?: never }
  | { readonly signal: number; readonly exitCode?: never };

/** The table of resources, sorted by name. Numbers have at most two decimals. */
export type Resources = readonly ResourceRow[];

export interface ResourceRow {
  /** `Cpus`, `Disk` (KB), `Memory` (MB), `TimeExecute` (s), `TimeSlotBusy` (s), `Gpus`, … */
  readonly name: string;
  readonly usage?: number;
  readonly request?: number;
  readonly allocated?: number;
}

export const NO_CPU: CpuTime = { user: 0, system: 0 };
