import { existsSync, readdirSync, readFileSync, rmSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Ending } from '../site/contract.ts';
import { isAlive, type ProcessIdentity } from '../util/process-identity.ts';
import {
  type AttemptPlace,
  type AttemptRecord,
  type ExitRecord,
  readEnding,
  secondsOf,
  writeEnding,
} from './attempt-place.ts';
import type { Runner } from './shell.ts';
import type { ToldLane, ToldTask } from './lane.ts';

const SUFFIX = { stdout: 'out', stderr: 'err' } as const;

/** A task's files in the directory of its lane. */
export class LaneSlot implements AttemptPlace {
  readonly n: number;
  readonly #dir: string;
  readonly #onRemoved: () => void;
  #marked = false;
  /** What runs it; nothing here does where an earlier worker did. */
  lane: Runner | undefined;
  /** Its program and arguments as the shell reads them, until it is told. */
  words = '';
  /** When the shell was told, Unix seconds; unknown of an earlier worker's. */
  began: number | undefined;
  /** As the shell said it; of an earlier worker's shell it is read from the log. */
  ended: ExitRecord | undefined;

  constructor(dir: string, n: number, onRemoved: () => void) {
    this.n = n;
    this.#dir = dir;
    this.#onRemoved = onRemoved;
  }

  get work(): string {
    return join(this.#dir, 'work');
  }

  get stdin(): string {
    return join(this.#dir, `${this.n}.in`);
  }

  stream(name: 'stdout' | 'stderr'): string {
    return join(this.#dir, `${this.n}.${SUFFIX[name]}`);
  }

  size(stream: 'stdout' | 'stderr'): number {
    return statSync(this.stream(stream), { throwIfNoEntry: false })?.size ?? 0;
  }

  startedAt(): number | undefined {
    if (this.ended?.status === 0) return this.began;
    const seen = secondsOf(this.stream('stdout'));
    return seen === undefined ? undefined : (this.began ?? seen);
  }

  exit(): ExitRecord | undefined {
    if (this.ended || this.began !== undefined) return this.ended;
    const log = join(this.#dir, 'log');
    const found = new RegExp(`^${this.n} (\\d+) ([01])$`, 'm').exec(readText(log));
    if (!found) return undefined;
    const endedAt = secondsOf(log) ?? 0;
    return { status: Number(found[1]), signaled: found[2] === '1', userSeconds: 0, systemSeconds: 0, endedAt };
  }

  decide(ending: Ending): void {
    this.#marked = true;
    writeEnding(this.#ending, ending);
  }

  decided(): Ending | undefined {
    return readEnding(this.#ending);
  }

  said(): string {
    return readText(join(this.#dir, 'said')).trim().slice(-500) || 'its shell could not start it';
  }

  remove(): void {
    for (const path of [this.stream('stdout'), this.stream('stderr')]) {
      try {
        unlinkSync(path);
      } catch {
        // Its program was not started.
      }
    }
    if (this.began === undefined || this.#marked) rmSync(this.#ending, { force: true });
    this.#onRemoved();
  }

  get #ending(): string {
    return join(this.#dir, `${this.n}.ending`);
  }
}

/** What an earlier worker's lanes left: tasks that were told and not forgotten. Lanes without any are removed. */
export function lanesIn(lanesDir: string): { record: AttemptRecord; slot: LaneSlot; shell: ProcessIdentity }[] {
  return readdirSync(lanesDir).flatMap((name) => {
    const dir = join(lanesDir, name);
    const [lane, ...tasks] = readText(join(dir, 'told'))
      .split('\n')
      .flatMap((line) => parsed(line));
    const ended = new Set(
      readText(join(dir, 'log'))
        .split('\n')
        .map((line) => Number.parseInt(line, 10)),
    );
    const left = tasks.flatMap((task) => {
      const there = 'n' in task && (!ended.has(task.n) || existsSync(join(dir, `${task.n}.out`)));
      return there ? [task] : [];
    });
    const open = new Set(left.map(({ n }) => n));
    const removed = (n: number) => {
      open.delete(n);
      if (open.size === 0) rmSync(dir, { recursive: true, force: true });
    };
    if (!lane || !('shell' in lane) || left.length === 0) {
      if (!lane || !('shell' in lane) || !isAlive(lane.shell)) rmSync(dir, { recursive: true, force: true });
      return [];
    }
    const { shell, spec } = lane;
    return left.map(({ n, key, claim, size, lease, args }) => ({
      record: { key, claim, size, lease, spec: { ...spec, args } },
      slot: new LaneSlot(dir, n, () => removed(n)),
      shell,
    }));
  });
}

/** A line that is not whole was followed by nothing. */
function parsed(line: string): (ToldLane | ToldTask)[] {
  try {
    return [JSON.parse(line) as ToldLane | ToldTask];
  } catch {
    return [];
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
