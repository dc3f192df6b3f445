import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  rmdirSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import type { AttemptKey } from '../../job/ids.ts';
import type { Ending } from '../../site/contract.ts';
import { type Read, texts } from '../../util/schema.ts';
import { PROCESS_IDENTITY, type ProcessIdentity } from '../../util/process-identity.ts';
import {
  ATTEMPT_RECORD,
  type AttemptPlace,
  type AttemptRecord,
  type RunExitRecord,
  readEnding,
  readRecord,
  secondsOf,
  writeEnding,
} from './attempt-place.ts';
import { type Cgroup, type GroupDirs, groupIn } from './cgroup.ts';
import { isAttempt } from './execute-dir.ts';
import { removeLeft } from './remove-left.ts';
import { waited } from './waiter/waiter.ts';

const ARMED = z.strictObject({ starter: PROCESS_IDENTITY, names: texts });

/** One attempt's directory at a worker: its record, its sandbox `work/`, its streams and its exit record. */
export class AttemptDir implements AttemptPlace {
  readonly path: string;
  uid: number | undefined;

  constructor(jobsDir: string, key: AttemptKey) {
    this.path = join(jobsDir, key);
  }

  get work(): string {
    return join(this.path, 'work');
  }

  get stdin(): string {
    return join(this.path, 'stdin');
  }

  stream(name: 'stdout' | 'stderr'): string {
    return join(this.path, name);
  }

  /** Throws if the disk is full. */
  create(record: AttemptRecord): void {
    this.uid = record.user?.uid;
    mkdirSync(this.work, { recursive: true, mode: 0o700 });
    if (record.user) chmodSync(this.path, 0o711);
    // An incomplete record counts as none: nothing of it was started.
    writeFileSync(join(this.path, 'record'), JSON.stringify(record), { mode: 0o600 });
  }

  /** Its account may be another job's before the results have left: no account can pass into it any more. */
  seal(): void {
    if (this.uid !== undefined && existsSync(this.path)) chmodSync(this.path, 0o700);
  }

  record(): AttemptRecord | undefined {
    const record = readRecord(ATTEMPT_RECORD, join(this.path, 'record'));
    this.uid = record?.user?.uid;
    return record;
  }

  /** Records which shell may run it and what is in its sandbox, before the shell is told to start it. */
  arm(starter: ProcessIdentity, go: string, names: readonly string[], env?: string): void {
    writeFileSync(join(this.path, 'starter'), JSON.stringify({ starter, names }), { mode: 0o600 });
    if (env !== undefined) writeFileSync(join(this.path, 'env'), env, { mode: 0o600 });
    writeFileSync(join(this.path, 'go'), go, { mode: 0o600 });
  }

  armed(): Read<typeof ARMED> | undefined {
    return readRecord(ARMED, join(this.path, 'starter'));
  }

  noteGroup(places: GroupDirs): void {
    writeFileSync(join(this.path, 'group'), JSON.stringify(places), { mode: 0o600 });
  }

  group(): Cgroup | undefined {
    return groupIn(join(this.path, 'group'));
  }

  /** The container that its script created and did not remove: the runtime's program, and the container's name. */
  container(): { readonly program: string; readonly name: string } | undefined {
    try {
      const [program = '', name = ''] = readFileSync(join(this.path, 'box'), 'utf8').split('\n');
      return name === '' ? undefined : { program, name };
    } catch {
      return undefined;
    }
  }

  /** The container has been removed. */
  released(): void {
    rmSync(join(this.path, 'box'), { force: true });
  }

  startedAt(): number | undefined {
    return secondsOf(join(this.path, 'started'));
  }

  exit(): RunExitRecord | undefined {
    const path = join(this.path, 'exit');
    try {
      const record = waited(readFileSync(path, 'latin1'));
      // A record written by a shell contains no end time.
      return record?.endedAt === 0 ? { ...record, endedAt: secondsOf(path) ?? 0 } : record;
    } catch {
      return undefined;
    }
  }

  decide(ending: Ending): void {
    writeEnding(join(this.path, 'ending'), ending);
  }

  undecide(): void {
    rmSync(join(this.path, 'ending'), { force: true });
  }

  decided(): Ending | undefined {
    return readEnding(join(this.path, 'ending'));
  }

  noteMemory(kb: number): void {
    try {
      writeFileSync(join(this.path, 'memory'), String(kb), { mode: 0o600 });
    } catch {
      // No space left: after a crash of the worker the peak is unknown.
    }
  }

  memory(): number {
    try {
      return Number(readFileSync(join(this.path, 'memory'), 'utf8')) || 0;
    } catch {
      return 0;
    }
  }

  said(): string {
    try {
      return readFileSync(join(this.path, 'said'), 'utf8').trim();
    } catch {
      return 'its shell could not start it';
    }
  }

  size(stream: 'stdout' | 'stderr'): number {
    return statSync(join(this.path, stream), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Its files are not shared with other attempts. */
  swept(): void {}

  remove(): void {
    try {
      // Ten times faster than the general way for the usual few files and a sandbox without directories.
      for (const dir of [this.work, this.path]) {
        for (const name of readdirSync(dir)) unlinkSync(join(dir, name));
        rmdirSync(dir);
      }
    } catch {
      removeLeft(this.path, this.uid !== undefined);
    }
  }
}

/** The attempts that have a directory. */
export function attemptsIn(jobsDir: string): AttemptKey[] {
  return readdirSync(jobsDir).filter(isAttempt) as AttemptKey[];
}
