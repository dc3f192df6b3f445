import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { constants } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { asError } from '../errors.ts';
import { LONGEST_TIMER_MS } from '../util/long-timer.ts';
import { flushDir } from '../util/private-file.ts';
import { parseStored } from '../util/stored-json.ts';
import {
  type DagFiles,
  type Happening,
  type Journal,
  JOURNAL_ENTRY,
  type JournalEntry,
  type ScriptRun,
} from './manager/world.ts';

/** How much of a script's output is kept for its DEBUG file, in characters. */
const MOST_OUTPUT = 1_048_576;

/** Files of this machine; paths are relative to `root`, the DAG manager's directory. */
export function diskFiles(root: string): DagFiles {
  const at = (path: string): string => (isAbsolute(path) ? path : join(root, path));
  const replace = (path: string, text: string, flush: boolean): void => {
    fs.mkdirSync(dirname(at(path)), { recursive: true });
    const part = `${at(path)}.part`;
    fs.writeFileSync(part, text, { flush });
    fs.renameSync(part, at(path));
  };
  return {
    read(path) {
      try {
        return fs.readFileSync(at(path), 'utf8');
      } catch {
        return undefined;
      }
    },
    absolute: (path) => resolve(root, path),
    exists: (path) => fs.existsSync(at(path)),
    write(path, text) {
      replace(path, text, false);
    },
    keep(path, text) {
      replace(path, text, true);
      flushDir(dirname(at(path)));
      // The directory of save points may be new.
      flushDir(dirname(dirname(at(path))));
    },
    append(path, text) {
      fs.appendFileSync(at(path), text);
    },
    size: (path) => fs.statSync(at(path), { throwIfNoEntry: false })?.size ?? 0,
    truncate: (path, size) => fs.truncateSync(at(path), size),
    rename(from, to) {
      fs.renameSync(at(from), at(to));
    },
    remove(path) {
      fs.rmSync(at(path), { force: true });
    },
  };
}

/** Reads a journal without changing it: its manager may be running, or may just have ended and deleted it. */
export function readJournal(path: string): readonly JournalEntry[] {
  let text: string;
  try {
    text = fs.readFileSync(path, 'utf8');
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return [];
    throw thrown;
  }
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) =>
      parseStored(JOURNAL_ENTRY, line, {
        what: `The journal of a DAG ${path}`,
        remedy: 'Remove the DAG (gryphus dag rm) and submit it again; its rescue file keeps what is done.',
      }),
    );
}

/** A journal in one file, one entry per line. An entry cut off by a crash is removed before more is written. */
export class FileJournal implements Journal {
  private readonly path: string;
  private fd: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  read(): readonly JournalEntry[] {
    if (!fs.existsSync(this.path)) return [];
    const text = fs.readFileSync(this.path, 'utf8');
    const whole = text.lastIndexOf('\n') + 1;
    if (whole < text.length) fs.truncateSync(this.path, Buffer.byteLength(text.slice(0, whole)));
    return readJournal(this.path);
  }

  append(entry: JournalEntry): void {
    this.fd ??= this.#open();
    fs.writeSync(this.fd, `${JSON.stringify(entry)}\n`);
    fs.fdatasyncSync(this.fd);
  }

  #open(): number {
    const fd = fs.openSync(this.path, 'a', 0o600);
    flushDir(dirname(this.path));
    return fd;
  }

  close(): void {
    if (this.fd !== undefined) fs.closeSync(this.fd);
    this.fd = undefined;
  }
}

/** Runs the scripts of a DAG's nodes, each in its own process group, and reports their ends to `onEnd`. */
export class ScriptRunner {
  private readonly root: string;
  private readonly env: NodeJS.ProcessEnv;
  private readonly onEnd: (end: Extract<Happening, { readonly is: 'script-ended' }>) => void;
  private readonly running = new Set<ChildProcess>();

  constructor(
    root: string,
    env: NodeJS.ProcessEnv,
    onEnd: (end: Extract<Happening, { readonly is: 'script-ended' }>) => void,
  ) {
    this.root = root;
    this.env = env;
    this.onEnd = onEnd;
  }

  start(script: ScriptRun): void {
    const { run } = script;
    const cwd = resolve(this.root, script.directory);
    const program = resolve(cwd, script.argv[0] ?? '');
    const problem = whyNotRunnable(cwd, program, script.argv[0] ?? '');
    if (problem !== undefined) {
      this.onEnd({ is: 'script-ended', run, end: { code: 1 }, notStarted: problem });
      return;
    }
    const wants = (stream: 'STDOUT' | 'STDERR'): 'pipe' | 'ignore' =>
      script.capture === stream || script.capture === 'ALL' ? 'pipe' : 'ignore';
    const child = spawn(program, script.argv.slice(1), {
      cwd,
      env: this.env,
      detached: true,
      stdio: ['ignore', wants('STDOUT'), wants('STDERR')],
    });
    this.running.add(child);
    let output = '';
    const keep = (chunk: Buffer): void => {
      if (output.length < MOST_OUTPUT) output += chunk.toString('utf8');
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    const ended = (end: { code: number } | { signal: number }, notStarted?: string): void => {
      if (!this.running.delete(child)) return;
      const captured = script.capture === undefined ? {} : { output };
      this.onEnd({ is: 'script-ended', run, end, ...captured, ...(notStarted === undefined ? {} : { notStarted }) });
    };
    child.on('error', (error) => ended({ code: 1 }, `Cannot start ${program}: ${asError(error).message}`));
    child.on('close', (code, signal) => {
      ended(signal === null ? { code: code ?? 1 } : { signal: constants.signals[signal] ?? 9 });
    });
  }

  killAll(): void {
    for (const child of this.running) {
      if (child.pid === undefined) continue;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended in the meantime.
      }
    }
  }
}

function whyNotRunnable(cwd: string, program: string, said: string): string | undefined {
  if (!fs.existsSync(cwd)) return `Could not change to node directory ${cwd}: No such file or directory`;
  try {
    fs.accessSync(program, fs.constants.X_OK);
  } catch {
    return fs.existsSync(program)
      ? `Cannot run "${said}": it is not executable (chmod +x ${said})`
      : `Cannot access specified executable "${said}": No such file or directory`;
  }
  return undefined;
}

/** Collects happenings from many sources for `DagWorld.next`. */
export class Inbox {
  private readonly waiting: Happening[] = [];
  private wake: (() => void) | undefined;

  put(happening: Happening): void {
    this.waiting.push(happening);
    this.wake?.();
  }

  /** Returns everything received; waits for the first until `until` (Unix milliseconds). */
  async take(until: number | undefined): Promise<readonly Happening[]> {
    const left = until === undefined ? undefined : until - Date.now();
    if (this.waiting.length === 0 && (left === undefined || left > 0)) {
      await new Promise<void>((done) => {
        const timer = left === undefined ? undefined : setTimeout(done, Math.min(left, LONGEST_TIMER_MS));
        this.wake = () => {
          clearTimeout(timer);
          done();
        };
      });
      this.wake = undefined;
    }
    return this.waiting.splice(0);
  }
}
