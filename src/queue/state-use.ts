import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { eachSecond } from '../util/each-second.ts';
import { writeWhole } from '../util/private-file.ts';
import { storedOr } from '../util/stored-json.ts';
import { warn } from '../util/warn.ts';
import { isServerFree, renewFiles } from './redis-files.ts';

const MACHINE = z.object({ host: z.string(), boot: z.string() });
/** Machines are told apart by both: either may change, but not without the other staying. */
export type Machine = z.infer<typeof MACHINE>;

/** How often a Scheduler touches the record, and how long another machine watches it, in milliseconds. */
const BEAT_MS = 5000;
const WATCH_MS = 16_000;
const LOOK_MS = 500;
/** Two that take over from a dead one at the same moment: the later one has it, and each looks after this time, in milliseconds. */
const SETTLE_MS = 1500;

export function isSameMachine(one: Machine, other: Machine): boolean {
  return one.host === other.host || (one.boot !== '' && one.boot === other.boot);
}

/**
 * Makes this machine the one that uses the state directory: the file `in-use` names it. Rejects with 'already-running' if another one
 * does. Only the file's name is relied on, which one machine at a time can make, and changes of its time; neither locks nor clocks.
 * `last`: who used it last, for a record of an older build, which names nobody.
 */
export async function claimUse(
  stateDir: string,
  me: Machine,
  last: Machine | undefined,
  leaving?: AbortSignal,
): Promise<void> {
  for (;;) {
    const known = userOf(stateDir);
    if (known === undefined) {
      if (make(stateDir, me)) return;
      continue;
    }
    const other = known === 'unnamed' ? last : known;
    if (!other || isSameMachine(other, me)) return;
    if ((await watch(stateDir, other, leaving)) === 'free') continue;
    // Where locks are seen by both, one that only sleeps still has its own.
    if (!isServerFree(stateDir)) throw used(stateDir, other);
    writeWhole(fileOf(stateDir), JSON.stringify(me));
    await sleep(SETTLE_MS, undefined, leaving && { signal: leaving });
    const winner = userOf(stateDir);
    if (winner !== undefined && winner !== 'unnamed' && !isSameMachine(winner, me)) throw used(stateDir, winner);
    renewFiles(stateDir);
    return;
  }
}

/** The other machine that uses a state directory, or used it last and did not end in order. */
export function usedElsewhere(stateDir: string, me: Machine, last: Machine | undefined): string | undefined {
  const known = userOf(stateDir);
  const other = known === 'unnamed' ? last : known;
  return other && !isSameMachine(other, me) ? other.host : undefined;
}

/**
 * For the Scheduler: shows other machines that the directory is in use. `lost`: another one uses it now, because this one slept too long
 * to be seen. Returns what ends that, at an orderly end.
 */
export function keepUse(stateDir: string, me: Machine, lost: (host: string) => void): () => void {
  const file = fileOf(stateDir);
  try {
    writeWhole(file, JSON.stringify(me));
  } catch {
    // The disk is full; a process of this machine holds Redis' lock in any case.
  }
  let touched = performance.now();
  const stop = eachSecond(() => {
    const host = usedElsewhere(stateDir, me, undefined);
    if (host !== undefined) {
      stop();
      lost(host);
      return;
    }
    if (performance.now() - touched < BEAT_MS) return;
    touched = performance.now();
    const now = new Date();
    try {
      utimesSync(file, now, now);
    } catch {
      // Gone with its directory, or never made.
    }
  });
  return () => {
    stop();
    if (usedElsewhere(stateDir, me, undefined) === undefined) rmSync(file, { force: true });
  };
}

/** Its clock is not ours: only a change of the file's time shows that the Scheduler there lives. */
async function watch(stateDir: string, other: Machine, leaving?: AbortSignal): Promise<'free' | 'silent'> {
  const first = timeOf(fileOf(stateDir));
  if (first === undefined) return 'free';
  const seconds = Math.ceil(WATCH_MS / 1000);
  warn(
    `The state directory ${stateDir} was last used on host ${other.host}: watching for ${seconds} s whether that goes on.`,
  );
  for (const end = performance.now() + WATCH_MS; performance.now() < end; ) {
    await sleep(LOOK_MS, undefined, leaving && { signal: leaving });
    const now = timeOf(fileOf(stateDir));
    if (now === undefined) return 'free';
    if (now !== first) throw used(stateDir, other);
  }
  return 'silent';
}

function used(stateDir: string, { host }: Machine): GryphusError {
  return new GryphusError('already-running', `The state directory ${stateDir} is in use on host ${host}.`, {
    suggestions: [
      `Work there, or end it there first: gryphus down`,
      'For an agent of its own on this machine, set GRYPHUS_HOME to a directory that the machines do not share.',
    ],
  });
}

/** Whether this process made the record: of several, one does, on NFS too. */
function make(stateDir: string, me: Machine): boolean {
  const file = fileOf(stateDir);
  const mine = `${file}.${randomBytes(6).toString('hex')}.new`;
  try {
    writeFileSync(mine, JSON.stringify(me), { mode: 0o600, flag: 'wx' });
    try {
      // Never empty, as a file that is made under its own name is at first.
      linkSync(mine, file);
    } catch (thrown) {
      if (hasCode(thrown, 'EEXIST')) return false;
      // This file system has no links.
      if (existsSync(file)) return false;
      renameSync(mine, file);
    }
  } catch {
    // The disk is full: it is used without a record.
  } finally {
    rmSync(mine, { force: true });
  }
  return true;
}

function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === code;
}

/** 'unnamed': an older build's record. */
function userOf(stateDir: string): Machine | 'unnamed' | undefined {
  let text: string;
  try {
    text = readFileSync(fileOf(stateDir), 'utf8');
  } catch (thrown) {
    return hasCode(thrown, 'ENOENT') ? undefined : 'unnamed';
  }
  return storedOr(MACHINE, text) ?? 'unnamed';
}

/** NFS believes what it knows of a file's times for up to a minute, except when the file is opened. */
function timeOf(file: string): number | undefined {
  let opened: number;
  try {
    opened = openSync(file, 'r');
  } catch {
    return undefined;
  }
  try {
    return fstatSync(opened).mtimeMs;
  } finally {
    closeSync(opened);
  }
}

function fileOf(stateDir: string): string {
  return join(stateDir, 'in-use');
}
