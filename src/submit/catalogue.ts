import { DONE_TABLE, type Group, NOT_RUN_TABLE, REFUSED_TABLE, WARNED_TABLE } from './catalogue-table.ts';

/** Where a job may run: the pool, a batch system's site, a GRAM service, or beside the agent (local and scheduler universe). */
export const JOB_PLACES = ['pool', 'batch', 'gram', 'local'] as const;
export type JobPlace = (typeof JOB_PLACES)[number];

/**
 * How a command is put into the ad. `unquoted`: a string without the quotes around it. `path`: made absolute. `list`: parts
 * joined by commas. `natural`: an integer that is not negative.
 */
export type Kind = 'string' | 'unquoted' | 'list' | 'path' | 'unquoted-path' | 'bool' | 'int' | 'natural' | 'expr';

/**
 * What becomes of a submit command: nothing is taken silently. `done`: it is acted on, in these places or in all; in others it
 * is warned of. `warned`: it does nothing, and the submit says so. `refused`: a job with it would do something else than it
 * says. `not-run`: it belongs to a universe that is not run here, and goes with it.
 */
export type Fate = 'done' | 'warned' | 'refused' | 'not-run';

export interface SubmitCommand {
  readonly name: string;
  /** Another name, looked at where there is no value under the first. */
  readonly alias: string | undefined;
  /** What it is in the job's ad; `undefined`: nothing. */
  readonly attribute: string | undefined;
  /** Of one that is put into the ad as it stands. */
  readonly kind: Kind | undefined;
  readonly fate: Fate;
  /** The file below src that acts on it. */
  readonly by: string | undefined;
  /** Where it is done; `undefined`: everywhere. */
  readonly at: readonly JobPlace[] | undefined;
  /** Why not, or how; what to do instead. */
  readonly says: string | undefined;
  /** A value, as the ad has it, that asks for nothing. */
  readonly idle: RegExp;
}

const ASKS_NOTHING = /^(false|undefined|0|0\.0|"")$/i;

/** `name[:Attribute[:alias]]`, by blanks. */
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

/** Every submit command that is known, those of HTCondor 25 and ours; `+Name` is an attribute that is given by itself. */
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

/** The names under which a description may say it: the command, its other name, the attribute by itself. */
export function spellings({ name, alias, attribute }: SubmitCommand): readonly string[] {
  return [name, alias, attribute, attribute && `MY.${attribute}`].filter(
    (one) => one !== undefined && one !== '',
  ) as string[];
}
