import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { shellWords } from '../../src/util/shell-quote.ts';

/** The built executable; GRYPHUS_BIN names another one to test, such as an installed one. */
export const BIN = process.env['GRYPHUS_BIN'] ?? resolve(import.meta.dirname, '../../dist/bin/gryphus.js');

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit: number | null;
}

export interface Options {
  readonly home: string;
  readonly stdin?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the command line as a user would, isolated from this machine's own configuration. */
export function start(words: readonly string[], { home, stdin, cwd, env }: Options): ChildProcessWithoutNullStreams {
  if (!existsSync(BIN)) throw new Error(`${BIN} does not exist: run the build first`);
  const child = spawn(process.execPath, [BIN, ...words], {
    cwd: cwd ?? home,
    env: { PATH: process.env['PATH'], HOME: home, GRYPHUS_HOME: home, TZ: 'UTC', LANG: 'C.UTF-8', ...env },
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin ?? '');
  return child;
}

export async function gryphus(words: readonly string[], options: Options): Promise<Ended> {
  return ended(start(words, options));
}

/** The same in a terminal with this many columns; returns what it shows, with the line ends of a file. */
export async function atTerminal(
  words: readonly string[],
  { home, cwd, env, stdin }: Options,
  columns = 80,
): Promise<string> {
  const command = `stty cols ${columns} rows 50; exec ${shellWords([process.execPath, BIN, ...words])}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: cwd ?? home,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      GRYPHUS_HOME: home,
      TZ: 'UTC',
      LANG: 'C.UTF-8',
      SHELL: '/bin/sh',
      ...env,
    },
  });
  child.stdin.on('error', () => undefined);
  // If it exited, the terminal would close.
  if (stdin !== undefined) child.stdin.write(stdin);
  const { stdout } = await ended(child);
  return stdout.replaceAll('\r\n', '\n');
}

export function ended(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((done, failed) => {
    child.once('error', failed);
    child.once('close', (exit) => done({ stdout, stderr, exit }));
  });
}
