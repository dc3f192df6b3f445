import { readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { bootId } from '../util/boot-clock.ts';
import { isMarked, sameMark } from '../util/marked-dir.ts';
import { ownUser } from '../util/own-user.ts';
import { writeWhole } from '../util/private-file.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { storedOr } from '../util/stored-json.ts';
import { claimUse, isSameMachine, keepUse, type Machine, usedElsewhere } from './state-use.ts';

/** Where a state directory is used: `host` and `boot` tell machines apart, the rest tells a copy from the original. */
const PLACE = z.object({ host: z.string(), boot: z.string(), path: z.string(), dev: z.number(), ino: z.number() });
type Place = z.infer<typeof PLACE>;

/**
 * Makes sure that this is the only place from which the state directory is used, before its Redis is started. Rejects with
 * 'already-running' if another machine uses it (a home on NFS), with 'conflict' if it is a copy of one that is still there. A home
 * that was moved, and a machine with a new name, are recorded.
 */
export async function settlePlace(stateDir: string, leaving?: AbortSignal): Promise<void> {
  const file = join(stateDir, 'place');
  const known = read(file);
  const here = placeOf(stateDir);
  if (known && isSameMachine(known, here)) refuseCopy(known, here);
  if (isMarked(stateDir)) await claimUse(stateDir, machineOf(here), known, leaving);
  if (known && JSON.stringify(known) === JSON.stringify(here)) return;
  if (!isMarked(stateDir)) return;
  try {
    writeWhole(file, JSON.stringify(here));
  } catch {
    // The disk is full; what is known of the former place stays.
  }
}

/** For the Scheduler: see `keepUse`. */
export function usePlace(stateDir: string, lost: (host: string) => void): () => void {
  return keepUse(stateDir, machineOf(placeOf(stateDir)), lost);
}

/** The other machine that uses this state directory, or used it last and did not end in order. */
export function hostElsewhere(stateDir: string): string | undefined {
  return isMarked(stateDir) ? usedElsewhere(stateDir, placeOf(stateDir), read(join(stateDir, 'place'))) : undefined;
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

function machineOf({ host, boot }: Place): Machine {
  return { host, boot };
}

function placeOf(stateDir: string): Place {
  const path = realpathSync(stateDir);
  const { dev, ino } = statSync(path);
  return { host: hostname(), boot: bootId(), path, dev, ino };
}

function read(file: string): Place | undefined {
  try {
    return storedOr(PLACE, readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}
