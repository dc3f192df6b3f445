import { open } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { isUnflushable } from './private-file.ts';

/** The next flush of each directory, which has not begun, and the one that goes on. */
const next = new Map<string, Promise<void>>();
const current = new Map<string, Promise<void>>();

/**
 * Resolves when the names that were made or replaced in a directory so far are on disk. Those who ask at about the same time share one
 * flush, so that many small files cost few. Rejects if the disk fails.
 */
export function namesFlushed(directory: string): Promise<void> {
  const waiting = next.get(directory);
  if (waiting) return waiting;
  const mine = afterCurrent(directory).finally(() => {
    if (current.get(directory) === mine) current.delete(directory);
  });
  next.set(directory, mine);
  return mine;
}

async function afterCurrent(directory: string): Promise<void> {
  await current.get(directory)?.catch(() => undefined);
  // Files whose content came on disk in this turn are renamed in it.
  await turn();
  const mine = next.get(directory);
  next.delete(directory);
  if (mine) current.set(directory, mine);
  await flush(directory);
}

async function flush(path: string): Promise<void> {
  try {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  } catch (thrown) {
    if (!isUnflushable(thrown)) throw thrown;
  }
}
