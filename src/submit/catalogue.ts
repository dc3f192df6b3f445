import { DONE_TABLE, type Group, NOT_RUN_TABLE, REFUSED_TABLE, WARNED_TABLE } from './catalogue-table.ts';

/**
 * Where a job may run: the pool, a batch system's site, a GRAM service, or on the agent's machine (local and scheduler
 * universe).
 */
export const JOB_PLACES = ['pool', 'batch', 'gram', 'local'] as const;
export type JobPlace = (typeof JOB_PLACES)[number];

/**
 * How a command is put into the ad. `unquoted`: a string without the quotes around it. `path`: made absolute. `list`:
 * parts joined by commas. `natural`: a non-negative integer.
 */
export type CommandKind =
  | 'string'
  | 'unquoted'
  | 'list'
  | 'path'
  | 'unquoted-path'
  | 'bool'
  | 'int'
  | 'natural'
  | 'expr';

/**
 * How a submit command is handled; none is ignored silently. `done`: takes effect, either everywhere or only in certain
 * places, with a warning in the others. `warned`: has no effect, and the submit says so. `refused`: with it, the job
 * would not do what it says. `not-run`: only matters in a universe that does not run here.
 */
export type Fate = 'done' | 'warned' | 'refused' | 'not-run';

export interface SubmitCommand {
  readonly name: string;
  /** Another name, used if the first has no value. */
  readonly alias: string | undefined;
  /** The attribute in the job's ad, if any. */
  readonly attribute: string | undefined;
  /** For a command that is put into the ad as it stands. */
  readonly kind: CommandKind | undefined;
  readonly fate: Fate;
  /** The file below src that implements it. */
  readonly by: string | undefined;
  /** The places where it takes effect; `undefined` means everywhere. */
  readonly at: readonly JobPlace[] | undefined;
  /** Why it has no effect or how it works, and what to do instead. */
  readonly says: string | undefined;
  /** Matches values, as they are in the ad, that ask for nothing. */
  readonly idle: RegExp;
}

const ASKS_NOTHING = /^(false|undefined|0|0\.0|"")$/i;

/** `name[:Attribute[:alias]]`, separated by blanks. */
function commandsOf(group: Group, fate: Fate): SubmitCommand[] {
  const { names, kind, by, at, says, idle = ASKS_NOTHING } = group;
  return names
    .trim()
    .split(/\s+/)
    .map((one) => {
      const [name = '', attribute, alias] = one.split(':');
      return { name, alias, attribute: attribute === '' ? undefined : attribute, kind, fate, by, at, says, idle };
    });
}

/** Every known submit command, HTCondor 25's and ours; `+Name` stands for an attribute set directly. */
export const CATALOGUE: readonly SubmitCommand[] = [
  ...DONE_TABLE.flatMap((group) => commandsOf(group, 'done')),
  ...WARNED_TABLE.flatMap((group) => commandsOf(group, 'warned')),
  ...REFUSED_TABLE.flatMap((group) => commandsOf(group, 'refused')),
  ...NOT_RUN_TABLE.flatMap((group) => commandsOf(group, 'not-run')),
];

const NAMES = new Set(CATALOGUE.flatMap(({ name, alias }) => [name, alias ?? name]).map((name) => name.toLowerCase()));

export function isSubmitCommand(name: string): boolean {
  return NAMES.has(name.toLowerCase());
}

/** All names under which a description may set it: the command, its other name, the attribute itself. */
export function spellings({ name, alias, attribute }: SubmitCommand): readonly string[] {
  return [name, alias, attribute, attribute && `MY.${attribute}`].filter(
    (one) => one !== undefined && one !== '',
  ) as string[];
}
