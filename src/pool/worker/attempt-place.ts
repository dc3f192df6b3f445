import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import type { Ending } from '../../site/contract.ts';
import { attemptKey } from '../../job/schema.ts';
import { ending } from '../../site/shapes.ts';
import { amount, maybe, type Read, text, texts } from '../../util/schema.ts';
import { storedOr } from '../../util/stored-json.ts';
import type { Cgroup, GroupDirs } from './cgroup.ts';
import { type Choice, JOB_USER } from './job-users.ts';
import { runSpec, size } from '../wire/wire.ts';

/** What a worker records of an attempt before it does anything else for it. */
export const ATTEMPT_RECORD = z.strictObject({
  key: attemptKey,
  claim: text,
  size,
  spec: runSpec,
  /** Seconds. */
  lease: amount,
  /** Under whose account it runs, if not the worker's. */
  user: maybe(JOB_USER),
  /** Its GPUs, which no other job has until it has ended; absent if the machine has none. */
  gpus: maybe(texts),
  /** A signal some time before its limit: `[B:]SIGUSR1@SECONDS` (warning.ts). */
  warning: maybe(text),
});
export type AttemptRecord = Read<typeof ATTEMPT_RECORD>;

/**
 * What is recorded of an attempt that is to start. In a directory of the agent's machine jobs run only as the agent's own
 * user; the tasks of a map, which have no files of their own, do so under any account, and see what that may see.
 */
export function recordOf(
  {
    key,
    claim,
    size,
    lease,
    gpus,
    warning,
  }: Pick<AttemptRecord, 'key' | 'claim' | 'size' | 'lease'> & {
    readonly gpus: AttemptRecord['gpus'] | undefined;
    readonly warning: string | undefined;
  },
  spec: AttemptRecord['spec'],
  account: Choice,
  sharesHome: boolean,
  isTask: boolean,
): AttemptRecord {
  const { shared, ...others } = spec;
  const common = { key, claim, size, lease, ...(gpus && { gpus }), ...(warning !== undefined && { warning }) };
  if ('user' in account && account.user) {
    const there = shared && isTask ? { ...others, cwd: shared.cwd } : others;
    return { ...common, spec: there, user: account.user };
  }
  return { ...common, spec: sharesHome && shared ? { ...others, shared } : others };
}

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
  /** The account that its files belong to, if not the worker's: what links in them lead to may be somebody else's. */
  readonly uid?: number | undefined;
  stream(name: 'stdout' | 'stderr'): string;
  /** Bytes. */
  size(stream: 'stdout' | 'stderr'): number;
  /** Unix seconds; `undefined` if its program was not started. */
  startedAt(): number | undefined;
  exit(): RunExitRecord | undefined;
  /** Records an ending that we decided; it overrides what the program's exit suggests. */
  decide(ending: Ending): void;
  /** Takes that back: what the program's exit suggests counts. */
  undecide(): void;
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
