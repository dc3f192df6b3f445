export interface SubmitRequest {
  /** The submit description. */
  readonly text: string;
  /** For messages and JobSubmitFile; `-` for standard input. */
  readonly file?: string;
  /** Where relative paths start; default the present directory. */
  readonly cwd?: string;
  /** Lines added at the end, as `-append`. */
  readonly append?: readonly string[];
  /** `name=value` given before the file. */
  readonly assign?: readonly string[];
  /** Replaces the file's queue statement, as `-queue`. */
  readonly queue?: string;
  readonly batchName?: string;
  readonly batchId?: string;
  /** Refuse the description if it makes more jobs; absent, 0 or -1: no limit. */
  readonly maxJobs?: number;
  /** Late materialization even where the description does not ask for it. */
  readonly factory?: boolean;
  /** Look whether input files and output directories are there; default true. */
  readonly checkFiles?: boolean;
  /** Warn of lines that no job uses; default true. */
  readonly warnUnused?: boolean;
  /** Take a `#!` script with DOS line ends, with a warning; default false. */
  readonly allowCrlfScript?: boolean;
}

export interface Warning {
  /** 1-based; absent where no line is at fault. */
  readonly line?: number;
  readonly message: string;
}

export interface Submitted {
  readonly cluster: number;
  /** Procs in the queue now; with late materialization fewer than `total`. */
  readonly queued: number;
  readonly total: number;
  readonly warnings: readonly Warning[];
}

/** A job's attributes as the queue shows them: name → ClassAd expression text in the old syntax (strings are quoted). */
export type AdText = Readonly<Record<string, string>>;

export interface DryRun {
  /** Of the ads that were read so far. */
  readonly warnings: readonly Warning[];
  /** One full ad a proc, lazily. */
  readonly ads: Iterable<AdText>;
  /** The cluster id that a real submit would have had is not known; ads say 1. */
  readonly total: number;
}
