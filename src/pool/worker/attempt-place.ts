import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import type { AttemptKey } from '../../job/ids.ts';
import type { Ending } from '../../site/contract.ts';
import type { Cgroup, GroupDirs } from './cgroup.ts';
import type { RunSpec, Size } from '../wire/wire.ts';

/** What a worker writes down of an attempt before it does anything for it. */
export interface AttemptRecord {
  readonly key: AttemptKey;
  readonly claim: string;
  readonly size: Size;
  readonly spec: RunSpec;
  /** Seconds. */
  readonly lease: number;
}

/** How a program ended, as wait(2) said it. */
export interface ExitRecord {
  readonly how: Extract<Ending['how'], { kind: 'exited' | 'signaled' }>;
  /** What it took, with those of its children that it waited for; 0 where that is not known. */
  readonly userSeconds: number;
  readonly systemSeconds: number;
  /** The most resident memory of one process, KB; 0 where it is not known. */
  readonly maxRssKb: number;
  /** Unix seconds. */
  readonly endedAt: number;
}

/** What is on disk of one attempt at a worker: its streams, its end, and whatever another worker needs to go on. */
export interface AttemptPlace {
  /** A directory for its files. */
  readonly work: string;
  /** Where its standard input is put. */
  readonly stdin: string;
  stream(name: 'stdout' | 'stderr'): string;
  /** Bytes. */
  size(stream: 'stdout' | 'stderr'): number;
  /** Unix seconds; `undefined`: its program was not started. */
  startedAt(): number | undefined;
  exit(): ExitRecord | undefined;
  /** An ending that we made ourselves: it wins over what the program's exit looks like. */
  decide(ending: Ending): void;
  decided(): Ending | undefined;
  /** The most memory that it was seen to hold, KB. */
  noteMemory(kb: number): void;
  memory(): number;
  /** Where its group will be, before it is made. */
  noteGroup(places: GroupDirs): void;
  group(): Cgroup | undefined;
  /** What its shell said: why the program could not be started. */
  said(): string;
  remove(): void;
  /** None of its processes is left. */
  swept(): void;
}

/** Whole, or not at all. */
export function writeEnding(path: string, ending: Ending): void {
  writeFileSync(`${path}.new`, JSON.stringify(ending), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function readEnding(path: string): Ending | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Ending;
  } catch {
    return undefined;
  }
}

/** When a file was last written, Unix seconds; `undefined` where there is none. */
export function secondsOf(path: string): number | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && Math.round(found.mtimeMs / 10) / 100;
}
