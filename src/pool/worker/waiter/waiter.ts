import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { arch } from 'node:os';
import { basename, isAbsolute, join } from 'node:path';
import { writeWhole } from '../../../util/private-file.ts';
import type { RunExitRecord } from '../attempt-place.ts';
import { waiterProgram } from './waiter-program.ts';

/** The texts of waiter.sh and ends.sh. */
export interface WaiterScripts {
  readonly waiter: string;
  readonly ends: string;
}

/** The file name of the waiter's program. */
export const WAITER = 'gryphus-waiter';
const FILES: ReadonlySet<string> = new Set([WAITER, 'waiter.sh']);
/** A shell starts the programs that the kernel cannot execute itself. */
const BY_SHELL = ['/bin/sh', '-c', 'exec "$@"', 'sh'];
const TRY_MS = 10_000;

/**
 * Installs the waiter in `dir`. Returns the command prefix for a program and its arguments, which runs the program and
 * writes its exit record to descriptor 9.
 */
export function placeWaiter(dir: string, { waiter, ends }: WaiterScripts): readonly string[] {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const program = waiterProgram(arch());
  const path = join(dir, WAITER);
  if (program) {
    if (!isThere(path, program)) writeWhole(path, program, 0o700);
    const words = [path, ...BY_SHELL];
    if (tells(words)) return words;
  }
  for (const [name, text] of Object.entries({ 'ends.sh': ends, 'waiter.sh': waiter }))
    if (!isThere(join(dir, name), Buffer.from(text))) writeWhole(join(dir, name), text);
  return ['/bin/sh', join(dir, 'waiter.sh'), ...BY_SHELL];
}

/** The same command with the copies in `dir` of the files that were installed. */
export function waiterIn(dir: string, words: readonly string[]): readonly string[] {
  return words.map((word) => (isAbsolute(word) && FILES.has(basename(word)) ? join(dir, basename(word)) : word));
}

/** An existing copy is kept, since the disk may be full now. */
function isThere(path: string, content: Buffer): boolean {
  try {
    return readFileSync(path).equals(content);
  } catch {
    return false;
  }
}

/** Whether it can run here and reports a signal correctly. */
function tells([command = '', ...words]: readonly string[]): boolean {
  const none = Array.from({ length: 9 }, () => 'ignore' as const);
  const { output } = spawnSync(command, [...words, '/bin/sh', '-c', 'kill -INT $$'], {
    stdio: [...none, 'pipe'],
    timeout: TRY_MS,
  });
  const how = waited(String(output?.[9] ?? ''))?.how;
  return how?.kind === 'signaled' && how.signal === 2;
}

const RECORD = /^((?:[0-9a-f]{16} ){7}[0-9a-f]{16})$/m;
/** The length of a record including its newline, in bytes. */
export const RECORD_BYTES = 8 * 17;

/** Parses the first record in a text; `undefined` if there is none. */
export function waited(text: string): RunExitRecord | undefined {
  const line = RECORD.exec(text)?.[1];
  if (line === undefined) return undefined;
  const numbers = line.split(' ').map((word) => Number.parseInt(word, 16));
  const [status = 0, user = 0, userMicro = 0, system = 0, systemMicro = 0, maxRssKb = 0, end = 0, endNano = 0] =
    numbers;
  return {
    how: howOf(status),
    userSeconds: user + userMicro / 1e6,
    systemSeconds: system + systemMicro / 1e6,
    maxRssKb,
    endedAt: Math.round(end * 100 + endNano / 1e7) / 100,
  };
}

/** Decodes a wait status as defined for wait(2) on Linux. */
function howOf(status: number): RunExitRecord['how'] {
  const signal = status & 0x7f;
  if (signal === 0) return { kind: 'exited', code: (status >> 8) & 0xff };
  return { kind: 'signaled', signal, ...((status & 0x80) === 0 ? {} : { coreDumped: true }) };
}
