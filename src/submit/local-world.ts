import { spawnSync } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readdirSync, readSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { boundedText, MOST_TEXT, readText, tooLong } from '../util/bounded-text.ts';
import type { FileFacts, WorldResult, SubmitWorld } from './world.ts';
import { ownUser } from '../util/own-user.ts';

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'No such file or directory',
  EACCES: 'Permission denied',
  EISDIR: 'Is a directory',
  ENOTDIR: 'Not a directory',
};

function reasonOf(thrown: unknown): string {
  const { code, message } = thrown as NodeJS.ErrnoException;
  return WORDS[code ?? ''] ?? message;
}

function attempt<T>(action: () => T): WorldResult<T> {
  try {
    return { ok: true, value: action() };
  } catch (thrown) {
    return { ok: false, reason: reasonOf(thrown) };
  }
}

function readable(path: string): boolean {
  return attempt(() => accessSync(path, constants.R_OK)).ok;
}

function look(path: string): FileFacts | undefined {
  const stats = attempt(() => statSync(path));
  if (!stats.ok) return undefined;
  return { directory: stats.value.isDirectory(), bytes: stats.value.size, readable: readable(path) };
}

function treeBytes(path: string): number {
  const entries = attempt(() => readdirSync(path, { withFileTypes: true, recursive: true }));
  if (!entries.ok) return 0;
  return entries.value
    .filter((entry) => !entry.isDirectory())
    .reduce((sum, entry) => sum + (look(join(entry.parentPath, entry.name))?.bytes ?? 0), 0);
}

function head(path: string, bytes: number): string {
  const file = attempt(() => openSync(path, 'r'));
  if (!file.ok) return '';
  const buffer = Buffer.alloc(bytes);
  const read = attempt(() => readSync(file.value, buffer, 0, bytes, 0));
  closeSync(file.value);
  return read.ok ? buffer.toString('latin1', 0, read.value) : '';
}

function run(argv: readonly string[], cwd: string): WorldResult<{ readonly stdout: string; readonly status: number }> {
  const [program, ...words] = argv;
  if (program === undefined) return { ok: false, reason: 'the command is missing' };
  const result = spawnSync(program, words, {
    cwd,
    encoding: 'utf8',
    maxBuffer: MOST_TEXT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (result.error !== undefined && 'code' in result.error && result.error.code === 'ENOBUFS') {
    return { ok: false, reason: tooLong(`what ${program} prints`, MOST_TEXT).message };
  }
  if (result.error) return { ok: false, reason: reasonOf(result.error) };
  return { ok: true, value: { stdout: result.stdout, status: result.status ?? 128 } };
}

export interface LocalWorldOptions {
  /** Write nothing, not even the FILE of `include command into FILE`. */
  readonly readOnly?: boolean;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** This machine; nothing else in this module touches files or starts programs. */
export function localWorld(options: LocalWorldOptions = {}): SubmitWorld {
  return {
    readText: (path) => attempt(() => boundedText(path, MOST_TEXT)),
    writeText: (path, text) =>
      options.readOnly ? { ok: true, value: undefined } : attempt(() => writeFileSync(path, text)),
    run,
    stdin: () => attempt(() => readText(0, MOST_TEXT, 'standard input')),
    look,
    treeBytes,
    list: (path) => {
      const entries = attempt(() => readdirSync(path, { withFileTypes: true }));
      return entries.ok ? entries.value.map((entry) => ({ name: entry.name, directory: entry.isDirectory() })) : [];
    },
    head,
    environment: options.environment ?? process.env,
    uid: ownUser().uid,
    random: Math.random,
  };
}
