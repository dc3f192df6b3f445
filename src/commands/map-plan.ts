import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { Style } from './map-places.ts';
import { MapCommandLine, MapName, type Turn, unnamed } from './map-words.ts';

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
  readonly style: Style;
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
  const named = (name: string) => new MapName(unnamed(name, places.names), places.style);
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

type Words<T> = (inputs: readonly string[], turn: Turn) => T;

/** The program, and how its arguments are made from the inputs of a task. */
export interface Plan {
  readonly executable: string;
  readonly words: Words<readonly string[]>;
  /** For a shell, and for people. */
  readonly line: Words<string>;
}

/** `nice`: the niceness of tasks, where the worker's is not greater already. */
export function plan(given: string, { names, style }: Places, nice?: number): Plan {
  const command = unnamed(given, names).trim();
  const [program = '', ...rest] = command.split(/[ \t]+/);
  if (program === '') throw new GryphusError('usage', 'The command is empty.');
  const commandLine = new MapCommandLine(command, style);
  const line: Words<string> = (inputs, turn) => commandLine.line(inputs, turn);
  const plain = nice === undefined && !style.context && style.whole === undefined && !style.plus;
  const path = plain && [program, ...rest].every((word) => PLAIN.test(word)) ? found(program) : undefined;
  if (nice !== undefined) {
    const kinder: Words<readonly string[]> = (...of) => [
      '-c',
      `n=$((${nice} - $(nice))); [ "$n" -gt 0 ] || n=0; exec nice -n "$n" /bin/sh -c ${shellQuote(line(...of))}`,
    ];
    return { executable: '/bin/sh', line, words: kinder };
  }
  if (path === undefined) return { executable: '/bin/sh', line, words: (...of) => ['-c', line(...of)] };
  return { executable: path, line, words: (...of) => commandLine.words(...of).slice(1) };
}

/** Finds a system program, which has the same path on every worker. */
function found(program: string): string | undefined {
  if (program.includes('{')) return undefined;
  if (program.includes('/')) return program.startsWith('/') && existsSync(program) ? program : undefined;
  return ['/usr/bin', '/bin'].map((dir) => join(dir, program)).find((path) => existsSync(path));
}
