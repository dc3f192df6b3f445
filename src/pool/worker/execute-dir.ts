import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { writeWhole } from '../../util/private-file.ts';
import { text } from '../../util/schema.ts';
import { readRecord } from './attempt-place.ts';
import { removeLeft } from './remove-left.ts';

/** Where sandboxes are if no one else can reach the worker's own directory. */
const EXECUTE = '/var/lib/gryphus/execute';

/** The same for a worker that does not belong to root. */
function fallbackOf(): string {
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? EXECUTE : `/var/tmp/gryphus-${uid}`;
}

/** In the worker's directory: those that it ever used. */
const NOTE_FILE = 'execute.json';
const PATHS = z.array(text);
const TRIES = 20;
/** Names the worker that uses a directory. */
const WORKER_FILE = 'worker';

export interface ExecuteOptions {
  /** `pool.execute`. */
  readonly configured?: string | undefined;
  readonly workerDir: string;
  readonly instance: string;
  readonly fallback?: string;
}

/**
 * HTCondor's EXECUTE: the directory with the sandboxes of jobs that run under other accounts than the worker's. They can
 * pass through it, but see only what is theirs.
 */
export class ExecuteDir {
  readonly path: string;
  readonly #workerDir: string;
  readonly #base: string | undefined;
  #isOpen = false;

  constructor({ configured, workerDir, instance, fallback = fallbackOf() }: ExecuteOptions) {
    this.#workerDir = workerDir;
    this.#base = configured ?? (isReachable(dirname(workerDir)) ? undefined : fallback);
    this.path = this.#base === undefined ? join(workerDir, 'execute') : join(this.#base, instance);
  }

  /** Those in which earlier workers here may have left jobs: settings and permissions may have changed since. */
  get left(): readonly string[] {
    return this.#noted().filter((path) => existsSync(path));
  }

  /** Creates it. Throws an explanation if other accounts could not reach it, or could replace it. */
  open(): void {
    if (this.#isOpen) return;
    if (this.#base === undefined) {
      makeOwn(this.#workerDir, 0o711);
      makeOwn(this.path, 0o711);
    } else this.#makeIn(this.#base);
    const noted = this.#noted();
    if (!noted.includes(this.path)) writeWhole(this.#noteFile, JSON.stringify([...noted, this.path]));
    this.#isOpen = true;
  }

  /** Another worker that ends removes the base if it is empty, perhaps at any moment in here. */
  #makeIn(base: string): void {
    for (let tries = 1; ; tries++) {
      try {
        mkdirSync(base, { recursive: true, mode: 0o755 });
        // In a directory that anybody may write to, somebody else could have made it.
        if (base === fallbackOf()) makeOwn(base, 0o755);
        if (!isReachable(base)) throw new Error(`${base} cannot be reached by the accounts of jobs (pool.execute)`);
        sweep(base);
        makeOwn(this.path, 0o711);
        return writeFileSync(join(this.path, WORKER_FILE), this.#workerDir, { mode: 0o600 });
      } catch (thrown) {
        if (tries === TRIES) throw thrown;
      }
    }
  }

  get #noteFile(): string {
    return join(this.#workerDir, NOTE_FILE);
  }

  #noted(): readonly string[] {
    return readRecord(PATHS, this.#noteFile) ?? [];
  }

  /** Removes it if no job has left anything for the next worker. */
  close(): void {
    const isKept = (path: string) => existsSync(this.#workerDir) && readdirSync(path).some(isAttempt);
    if (this.#base !== undefined && existsSync(this.path) && !isKept(this.path)) remove(this.path);
  }
}

/** Whether an entry is an attempt's. */
export function isAttempt(name: string): boolean {
  return name !== WORKER_FILE;
}

/** Others can pass through this directory and all above it. */
function isReachable(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false });
    if (!found || (found.mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

function makeOwn(path: string, mode: number): void {
  if (!existsSync(path)) mkdirSync(path, { mode });
  const found = lstatSync(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw new Error(`${path} belongs to somebody else`);
  chmodSync(path, mode);
}

/** Removes what workers left whose own directories no longer exist. */
function sweep(base: string): void {
  for (const name of readdirSync(base)) {
    const path = join(base, name);
    try {
      const found = lstatSync(path);
      const worker = readFileSync(join(path, WORKER_FILE), 'utf8');
      if (found.isDirectory() && found.uid === process.getuid?.() && !existsSync(worker)) remove(path);
    } catch {
      // It is no worker's.
    }
  }
}

function remove(path: string): void {
  removeLeft(path, true);
  try {
    rmdirSync(dirname(path));
  } catch {
    // Other workers use it.
  }
}
