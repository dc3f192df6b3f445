import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { MapCommandLine, MapName } from './map-words.ts';

/** Files carried to the tasks and back. */
export interface Files {
  readonly common: readonly string[];
  readonly own: readonly MapName[];
  readonly back: readonly MapName[];
  readonly anywhere: boolean;
}

export function filesOf(flags: {
  readonly input?: readonly string[] | undefined;
  readonly transferfile?: readonly string[] | undefined;
  readonly return?: readonly string[] | undefined;
  readonly anywhere: boolean;
}): Files {
  const { input = [], transferfile = [], return: back = [] } = flags;
  const [own, common] = [true, false].map((places) => input.filter((name) => new MapName(name).hasPlaces === places));
  return {
    common: common ?? [],
    own: [...transferfile, ...(own ?? [])].map((name) => new MapName(name)),
    back: back.map((name) => new MapName(name)),
    anywhere: flags.anywhere || input.length + transferfile.length + back.length > 0,
  };
}

/** If all words are like this, no shell is needed. */
const PLAIN = /^[A-Za-z0-9_./:@%+,{}-]+$/;

type Words<T> = (inputs: readonly string[], number: number) => T;

/** The program, and how its arguments are made from the inputs of a task. */
export function plan(given: string): { executable: string; words: Words<readonly string[]>; line: Words<string> } {
  const command = given.trim();
  const [program = '', ...rest] = command.split(/[ \t]+/);
  if (program === '') throw new GryphusError('usage', 'The command is empty.');
  const commandLine = new MapCommandLine(command);
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
