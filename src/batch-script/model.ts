/** The batch systems whose scripts are understood. */
export const SYSTEMS = ['slurm', 'pbs', 'sge', 'lsf'] as const;
export type System = (typeof SYSTEMS)[number];

/** One range of array indices, from `from` to at most `to`. */
export interface IndexRange {
  readonly from: number;
  readonly to: number;
  readonly step: number;
}

export interface ArrayIndices {
  readonly ranges: readonly IndexRange[];
  /** The most tasks that may be in the queue's running part at once. */
  readonly limit?: number;
}

/** Memory in bytes; which of them counts depends on the system and what else was given. */
export interface Memory {
  readonly bytes: number;
  readonly per: 'node' | 'cpu' | 'gpu' | 'job';
}

/** What a script asks for, whichever system it was written for. */
export interface Wishes {
  name?: string;
  seconds?: number;
  nodes?: number;
  /** They are not all of one kind. */
  unequalNodes?: boolean;
  tasks?: number;
  tasksPerNode?: number;
  cpusPerTask?: number;
  memory?: Memory;
  /** `siteWords` ask for it. */
  memoryInWords?: boolean;
  diskBytes?: number;
  gpus?: number;
  gpusPer?: 'job' | 'node' | 'task';
  wholeNode?: boolean;
  array?: ArrayIndices;
  /** In Slurm's words (`afterok:12,afterany:13_4`), which all systems' dependencies are translated to. */
  dependency?: string;
  /** A job whose dependency can no longer be met is removed. */
  removeInvalid?: boolean;
  output?: string;
  error?: string;
  /** What asks that lines which are in the output files already stay there. */
  append?: Written;
  input?: string;
  /** Standard error goes to standard output's file, or the other way round. */
  join?: 'output' | 'error' | 'none';
  mailUser?: string;
  mail?: 'never' | 'end' | 'error' | 'always';
  /** `submit`: where the job was submitted; `home`: the home directory; else a path. */
  directory?: 'submit' | 'home' | { readonly path: string };
  environment: 'all' | 'none';
  readonly variables: Map<string, string>;
  /** Variables taken from the submitter's environment by name. */
  readonly taken: Set<string>;
  queue?: string;
  project?: string;
  site?: string;
  held?: boolean;
  /** When it may start at the earliest, and must have ended; Unix seconds. */
  begin?: number;
  deadline?: number;
  /** Sent so many seconds before its time limit; `shell`: to the script itself, instead of to what that has started. */
  warning?: Written & { readonly signal: string; readonly seconds: number; readonly shell: boolean };
  priority?: number;
  comment?: string;
  /** What runs the script if its first line names nothing. */
  shell?: { readonly path: string; readonly written: Written };
  /** Words for a site that runs the same system, in its own language. */
  readonly siteWords: string[];
  /** Options without a meaning elsewhere: one warning each. */
  readonly siteOnly: Written[];
  /** Options that mean nothing here. */
  readonly without: (Written & { readonly why: string })[];
}

export function noWishes(environment: Wishes['environment']): Wishes {
  return { environment, variables: new Map(), taken: new Set(), siteWords: [], siteOnly: [], without: [] };
}

/** `word`: what asks for mail when a job begins. */
export function noMailAtBegin(wishes: Wishes, word: string, { option, line }: Written): void {
  wishes.without.push({ option: `${word} of ${option}`, line, why: 'there is no mail when a job begins' });
}

/** An option's value that cannot be read: one phrase. */
export class BadValue extends Error {}

/**
 * What becomes of an option: `done` here; `site`: only a site of the same system can do it, and gets it as written;
 * `without`: it means nothing here, with a warning; `refused`: the job would not do what the script's author wants.
 */
export type OptionFate = 'done' | 'site' | 'without' | 'refused';

/** An option as written, and on which line; 0 is the command line. */
export interface Written {
  readonly option: string;
  readonly line: number;
}

/** A row of the table of options. */
export interface Option {
  /** As written, the names apart by blanks: `-t --time`. */
  readonly names: string;
  readonly value?: 'needed' | 'optional';
  readonly fate: OptionFate;
  /** What it becomes, for the documentation; for `without` and `refused` the reason. */
  readonly becomes: string;
  readonly take?: (wishes: Wishes, value: string, written: Written) => void;
}

export interface Dialect {
  readonly system: System;
  /** As users know it. */
  readonly title: string;
  /** What directive lines begin with. */
  readonly prefix: RegExp;
  /** Directives end at the first line that is neither blank nor a comment. */
  readonly atTopOnly: boolean;
  /** Whether `--name=value` and joined short options (`-n4`) are written. */
  readonly long: boolean;
  readonly options: readonly Option[];
  /** What a job gets from the submitter's environment by default. */
  readonly environment: Wishes['environment'];
  readonly startsIn: 'submit' | 'home';
}
