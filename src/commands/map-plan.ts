import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { MapCommandLine, MapName, unnamed } from './map-words.ts';

/** Files carried to the tasks and back. */
export interface Files {
  readonly common: readonly string[];
  readonly own: readonly MapName[];
  readonly back: readonly MapName[];
  readonly anywhere: boolean;
}

/** What the placeholders of a map mean. */
export interface Places {
  /** Those of the header; none without one. */
  readonly names: readonly string[];
  /** How many inputs a task gets from a list. */
  readonly size: number;
}

export function filesOf(
  flags: {
    readonly input?: readonly string[] | undefined;
    readonly transferfile?: readonly string[] | undefined;
    readonly return?: readonly string[] | undefined;
    readonly anywhere: boolean;
  },
  places: Places,
): Files {
  const named = (name: string) => new MapName(unnamed(name, places.names), places.size);
  const { input = [], transferfile = [], return: back = [] } = flags;
  const [own, common] = [true, false].map((has) => input.filter((name) => named(name).hasPlaces === has));
  return {
    common: common ?? [],
    own: [...transferfile, ...(own ?? [])].map(named),
    back: back.map(named),
    anywhere: flags.anywhere || input.length + transferfile.length + back.length > 0,
  };
}

/** If all words are like this, no shell is needed. */
const PLAIN = /^[A-Za-z0-9_./:@%+,{}-]+$/;

type Words<T> = (inputs: readonly string[], number: number) => T;

/** The program, and how its arguments are made from the inputs of a task. */
export function plan(
  given: string,
  { names, size }: Places,
): { executable: string; words: Words<readonly string[]>; line: Words<string> } {
  const command = unnamed(given, names).trim();
  const [program = '', ...rest] = command.split(/[ \t]+/);
  if (program === '') throw new GryphusError('usage', 'The command is empty.');
  const commandLine = new MapCommandLine(command, size);
  const line: Words<string> = (inputs, number) => commandLine.line(inputs, number);
  const path = [program, ...rest].every((word) => PLAIN.test(word)) ? found(program) : undefined;
  if (path === undefined)
    return { executable: '/bin/sh', line, words: (inputs, number) => ['-c', line(inputs, number)] };
  return { executable: path, line, words: (inputs, number) => commandLine.words(inputs, number).slice(1) };
}

/** Finds a system program, which has the same path on every worker. */
function found(program: string): string | undefined {
  if (program.includes('{')) return undefined;
  if (program.includes('/')) return program.startsWith('/') && existsSync(program) ? program : undefined;
  return ['/usr/bin', '/bin'].map((dir) => join(dir, program)).find((path) => existsSync(path));
}
