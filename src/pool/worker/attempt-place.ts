import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import type { Ending } from '../../site/contract.ts';
import { attemptKey } from '../../job/schema.ts';
import { ending } from '../../site/shapes.ts';
import { amount, type Read, text } from '../../util/schema.ts';
import { storedOr } from '../../util/stored-json.ts';
import type { Cgroup, GroupDirs } from './cgroup.ts';
import { runSpec, size } from '../wire/wire.ts';

/** What a worker records of an attempt before it does anything else for it. */
export const ATTEMPT_RECORD = z.strictObject({
  key: attemptKey,
  claim: text,
  size,
  spec: runSpec,
  /** Seconds. */
  lease: amount,
});
export type AttemptRecord = Read<typeof ATTEMPT_RECORD>;

/** How a program ended, as reported by wait(2). */
export interface RunExitRecord {
  readonly how: Extract<Ending['how'], { kind: 'exited' | 'signaled' }>;
  /** CPU time of the program and the children that it waited for; 0 if unknown. */
  readonly userSeconds: number;
  readonly systemSeconds: number;
  /** The maximum resident memory of a single process, in KB; 0 if unknown. */
  readonly maxRssKb: number;
  /** Unix seconds. */
  readonly endedAt: number;
}

/** The on-disk state of an attempt at a worker: its streams, its ending, and what the next worker needs to continue. */
export interface AttemptPlace {
  /** The directory that the program's files are in. */
  readonly work: string;
  /** Where its standard input is placed. */
  readonly stdin: string;
  stream(name: 'stdout' | 'stderr'): string;
  /** Bytes. */
  size(stream: 'stdout' | 'stderr'): number;
  /** Unix seconds; `undefined` if its program was not started. */
  startedAt(): number | undefined;
  exit(): RunExitRecord | undefined;
  /** Records an ending that we decided; it overrides what the program's exit suggests. */
  decide(ending: Ending): void;
  decided(): Ending | undefined;
  /** The most memory that it was seen to use, in KB. */
  noteMemory(kb: number): void;
  memory(): number;
  /** Records where its cgroup will be, before the cgroup is created. */
  noteGroup(places: GroupDirs): void;
  group(): Cgroup | undefined;
  /** The error output of its shell: why the program could not be started. */
  said(): string;
  remove(): void;
  /** Called when none of its processes is left. */
  swept(): void;
}

/** Written atomically. */
export function writeEnding(path: string, given: Ending): void {
  writeFileSync(`${path}.new`, JSON.stringify(given), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function readEnding(path: string): Ending | undefined {
  return readRecord(ending, path);
}

/** `undefined` if there is no such file, or not what the schema says in it. */
export function readRecord<S extends z.ZodType>(schema: S, path: string): z.infer<S> | undefined {
  try {
    return storedOr(schema, readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** When a file was last written, in Unix seconds; `undefined` if it does not exist. */
export function secondsOf(path: string): number | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && Math.round(found.mtimeMs / 10) / 100;
}
