import { execFile } from 'node:child_process';
import { chmodSync, constants, copyFileSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { inherits } from './inherits.ts';
import { isOnLocalDisk } from './local-disk.ts';
import { modeOf, namesKept, partOf, place, type Placement, unplaceable } from './place.ts';
import { isSpecialFile } from './pour.ts';

/** From this many files on, one flush of their file system costs less than one for each file. */
const MANY = 100;
/** Files between two turns of other work of this process. */
const TURN = 100;
/** How many files are flushed at once where a whole file system cannot be. */
const AT_ONCE = 16;

const run = promisify(execFile);

/** Puts files where the user wants them, like `place`, but many of them with one flush for all. */
export async function placeAll(files: readonly Placement[]): Promise<void> {
  const [together, apart] = await divided(files);
  const waiting: { readonly file: Placement; readonly part: string }[] = [];
  let to = '';
  try {
    for (const [i, file] of together.entries()) {
      to = file.to;
      const part = partOf(to, file.from);
      waiting.push({ file, part });
      stage(file, part, file.mayLink === true && !(await inherits(dirname(to))));
      if (i % TURN === TURN - 1) await turn();
    }
    await flush(waiting.map(({ part }) => part));
    for (const [i, { file, part }] of waiting.entries()) {
      to = file.to;
      renameSync(part, to);
      // Renaming one name of a file to another one of the same file does nothing.
      rmSync(part, { force: true });
      if (i % TURN === TURN - 1) await turn();
    }
  } catch (thrown) {
    for (const { part } of waiting) rmSync(part, { force: true });
    throw unplaceable(to, thrown);
  }
  for (const file of apart) await place(file);
  await namesKept(files);
}

/** Ordinary files on a disk of this machine, if they are many, and the others. */
async function divided(files: readonly Placement[]): Promise<[Placement[], readonly Placement[]]> {
  if (files.length < MANY) return [[], files];
  const together: Placement[] = [];
  const apart: Placement[] = [];
  for (const file of files) {
    const local = await isOnLocalDisk(dirname(file.to));
    // What has no directory, or is one, is an error that `place` explains.
    const seen = local ? statSync(file.to, { throwIfNoEntry: false }) : undefined;
    const ordinary = local && !seen?.isDirectory() && !isSpecialFile(file.to, seen);
    (ordinary ? together : apart).push(file);
  }
  return [together, apart];
}

function stage(file: Placement, part: string, mayLink: boolean): void {
  rmSync(part, { force: true });
  if (!mayLink || !linked(file.from, part)) copyFileSync(file.from, part, constants.COPYFILE_FICLONE);
  chmodSync(part, modeOf(file));
}

function linked(from: string, part: string): boolean {
  try {
    linkSync(from, part);
    return true;
  } catch {
    return false;
  }
}

async function flush(parts: readonly string[]): Promise<void> {
  if (parts.length === 0) return;
  const disks = new Map(parts.map((part) => [statSync(dirname(part)).dev, dirname(part)]));
  const flushed = run('sync', ['-f', '--', ...disks.values()]).then(
    () => true,
    () => false,
  );
  if (await flushed) return;
  const left = [...parts];
  const worker = async (): Promise<void> => {
    for (let part = left.pop(); part !== undefined; part = left.pop()) {
      const file = await open(part, 'r');
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
