import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  type Stats,
  statSync,
  utimesSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { isMarked, sameMark } from '../util/marked-dir.ts';
import { ownUser } from '../util/own-user.ts';
import { writeWhole } from '../util/private-file.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { storedOr } from '../util/stored-json.ts';
import { warn } from '../util/warn.ts';

/** Where a state directory is used: `host` and `boot` tell machines apart, the rest tells a copy from the original. */
const PLACE = z.object({ host: z.string(), boot: z.string(), path: z.string(), dev: z.number(), ino: z.number() });
type Place = z.infer<typeof PLACE>;

/** How often a Scheduler touches its record, and how long another machine watches it, in milliseconds. */
const BEAT_MS = 5000;
const WATCH_MS = 16_000;
const LOOK_MS = 500;

/**
 * Makes sure that this is the only place from which the state directory is used, before its Redis is started. Rejects with
 * 'already-running' if another machine uses it (a home on NFS), with 'conflict' if it is a copy of one that is still there. A home
 * that was moved, and a machine with a new name, are recorded.
 */
export async function settlePlace(stateDir: string): Promise<void> {
  const file = join(stateDir, 'place');
  const known = read(file);
  const here = placeOf(stateDir);
  if (known && !isSameMachine(known, here)) await refuseUsed(stateDir, known);
  if (known && isSameMachine(known, here)) refuseCopy(known, here);
  if (known && JSON.stringify(known) === JSON.stringify(here)) return;
  if (!isMarked(stateDir)) return;
  try {
    writeWhole(file, JSON.stringify(here));
  } catch {
    // The disk is full; what is known of the former place stays.
  }
}

/** For the Scheduler: shows other machines that the directory is in use. Returns what ends that, at an orderly end. */
export function usePlace(stateDir: string): () => void {
  const file = usedFile(stateDir);
  try {
    writeWhole(file, '');
  } catch {
    // The disk is full; a process of this machine holds Redis' lock in any case.
  }
  const timer = setInterval(() => {
    const now = new Date();
    try {
      utimesSync(file, now, now);
    } catch {
      // Gone with its directory, or never made.
    }
  }, BEAT_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    rmSync(file, { force: true });
  };
}

/** Its clock is not ours: only a change of the file's time shows that the Scheduler there lives. */
async function refuseUsed(stateDir: string, { host }: Place): Promise<void> {
  const first = timeOf(usedFile(stateDir));
  if (first === undefined) return;
  const seconds = Math.ceil(WATCH_MS / 1000);
  warn(
    `The state directory ${stateDir} was last used on host ${host}: watching for ${seconds} s whether that goes on.`,
  );
  for (const end = performance.now() + WATCH_MS; performance.now() < end; await sleep(LOOK_MS)) {
    const now = timeOf(usedFile(stateDir));
    if (now === undefined) return;
    if (now !== first) throw used(stateDir, host);
  }
}

function used(stateDir: string, host: string): GryphusError {
  return new GryphusError('already-running', `The state directory ${stateDir} is in use on host ${host}.`, {
    suggestions: [
      `Work there, or end it there first: gryphus down`,
      'For an agent of its own on this machine, set GRYPHUS_HOME to a directory that the machines do not share.',
    ],
  });
}

function refuseCopy(known: Place, here: Place): void {
  if (known.path === here.path || (known.dev === here.dev && known.ino === here.ino)) return;
  const there = statOf(known.path);
  if (there === 'hidden') throw perhapsCopy(known, here);
  if (!there || there.ino === here.ino || !sameMark(known.path, here.path)) return;
  throw new GryphusError(
    'conflict',
    `${here.path} is a copy of ${known.path}, which is still there: two agents must not serve the same jobs.`,
    {
      suggestions: [
        `Use the original: unset GRYPHUS_HOME, or set it to the directory of ${known.path}.`,
        'To go on here instead, move the original away, and then take its jobs over: gryphus recover',
      ],
    },
  );
}

/** `undefined`: it is not there; 'hidden': this user may not look, as in the home of another one. */
function statOf(path: string): Stats | 'hidden' | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return 'hidden';
  }
}

function perhapsCopy(known: Place, here: Place): GryphusError {
  return new GryphusError(
    'conflict',
    `${here.path} is a copy of ${known.path}, or was moved from there, where user ${ownUser().username} may not look: two agents must ` +
      'not serve the same jobs.',
    {
      suggestions: [
        `If the one at ${known.path} is not used any more, say so: rm ${shellQuote(join(here.path, 'place'))}`,
        'If it may be, take its jobs over, so that the sites refuse it from then on: in a new GRYPHUS_HOME, gryphus recover',
      ],
    },
  );
}

function isSameMachine(one: Place, other: Place): boolean {
  return one.host === other.host || (one.boot !== '' && one.boot === other.boot);
}

function placeOf(stateDir: string): Place {
  const path = realpathSync(stateDir);
  const { dev, ino } = statSync(path);
  return { host: hostname(), boot: bootId(), path, dev, ino };
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

function read(file: string): Place | undefined {
  try {
    return storedOr(PLACE, readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
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

function usedFile(stateDir: string): string {
  return join(stateDir, 'in-use');
}
