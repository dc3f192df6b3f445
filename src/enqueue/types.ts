/** A submit description or a batch script, and what the command line adds to it. */
export interface SubmitRequest {
  /** The submit description. */
  readonly text: string;
  /** For messages and JobSubmitFile; `-` means standard input. */
  readonly file?: string;
  /** The base of relative paths; default: the current directory. */
  readonly cwd?: string;
  /** Lines added at the end, like `-append`. */
  readonly append?: readonly string[];
  /** `name=value` given before the file. */
  readonly assign?: readonly string[];
  /** Replaces the file's queue statement, like `-queue`. */
  readonly queue?: string;
  readonly batchName?: string;
  readonly batchId?: string;
  /** Refuse a description that makes more jobs; absent, 0 or -1: no limit. */
  readonly maxJobs?: number;
  /** Use late materialization even if the description does not request it. */
  readonly factory?: boolean;
  /** Check that input files and output directories exist; default true. */
  readonly checkFiles?: boolean;
  /** Warn about lines that no job uses; default true. */
  readonly warnUnused?: boolean;
  /** Attributes of all jobs, instead of those that the description sets: for values that its language cannot express. */
  readonly attributes?: AdText;
  /** Accept a `#!` script with DOS line endings, with a warning; default false. */
  readonly allowCrlfScript?: boolean;
  /** `text` is a batch script; a text that begins with `#!` always is. */
  readonly script?: ScriptRequest;
}

/** How a batch script is submitted (docs/batch-scripts.md). */
export interface ScriptRequest {
  /** Whose directives and options count; by default, those of the script's first directive. */
  readonly system?: 'slurm' | 'pbs' | 'sge' | 'lsf';
  /** Options of that system's submit command; they override the directives. */
  readonly options?: readonly string[];
  /** The script's arguments. */
  readonly args?: readonly string[];
  /** The site that runs it: a configured site, or `pool`; by default the script's, then the configuration's. */
  readonly site?: string;
  /** Files that are sent with it where it does not run in place. */
  readonly input?: readonly string[];
  /** The job's name if neither the script nor the options give one; by default the file's. */
  readonly name?: string;
}

/** Something in a submit description that has no effect, or not the expected one. */
export interface Warning {
  /** 1-based; absent if no line is at fault. */
  readonly line?: number;
  readonly message: string;
}

/** A cluster that is on disk in the queue. */
export interface Submitted {
  readonly cluster: number;
  /** Procs in the queue now; with late materialization, fewer than `total`. */
  readonly queued: number;
  readonly total: number;
  readonly warnings: readonly Warning[];
}

/** A job's attributes as in the queue: name → ClassAd expression text in the old syntax (strings are quoted). */
export type AdText = Readonly<Record<string, string>>;

/** What a submit would do; nothing is written. */
export interface DryRun {
  /** For the ads read so far. */
  readonly warnings: readonly Warning[];
  /** One full ad for each proc, lazily. The cluster id of a real submit is not known yet; ads say 1. */
  readonly ads: Iterable<AdText>;
  readonly total: number;
}
