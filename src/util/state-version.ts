import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { isMarked } from './marked-dir.ts';
import { writeWhole } from './private-file.ts';

/**
 * The version of everything in a state directory: of the queue, whose `meta` has it too, and of all files
 * (docs/years.md). A change that an older program would misread increments it. 1: the queue's groups were sorted sets; 2: bitmaps;
 * 3: the directory and the pool's journal say their version themselves.
 */
export const STATE_VERSION = 3;

/**
 * Throws 'state-version' if a newer program wrote this state directory. The file is read before anything else there, its Redis
 * included: an older program changes nothing.
 */
export function refuseNewerState(stateDir: string): void {
  const version = versionOf(stateDir);
  if (version !== undefined && version > STATE_VERSION) throw newerState(`The state in ${stateDir}`, String(version));
}

export function newerState(what: string, version: string): GryphusError {
  return new GryphusError(
    'state-version',
    `${what} was written by a newer Gryphus (state version ${version}, this one supports ${STATE_VERSION}).`,
    { suggestions: ['Use that newer Gryphus, or another state directory (GRYPHUS_HOME).'] },
  );
}

/** Whether an older program used the directory last: it did not say a version, or an earlier one. */
export function isOlderState(stateDir: string): boolean {
  return (versionOf(stateDir) ?? 0) < STATE_VERSION;
}

/** Records that this program has carried the state over. If it cannot be written, the next one does so. */
export function noteStateVersion(stateDir: string): void {
  if (!isOlderState(stateDir) || !isMarked(stateDir)) return;
  try {
    writeWhole(fileOf(stateDir), `${STATE_VERSION}\n`);
  } catch {
    // The disk is full, or read-only; the queue's own version is what an older program is refused by.
  }
}

function versionOf(stateDir: string): number | undefined {
  let text: string;
  try {
    text = readFileSync(fileOf(stateDir), 'utf8').trim();
  } catch {
    return undefined;
  }
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

function fileOf(stateDir: string): string {
  return join(stateDir, 'version');
}
