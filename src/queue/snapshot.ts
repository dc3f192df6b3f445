import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { Connection } from './redis.ts';

const LOOK_MS = 20;
/** Redis writes about 100 MB a second. */
const PATIENCE_MS = 10 * 60_000;
const SNAPSHOT = /^backup-[0-9a-f]{12}\.rdb$/;
/** No backup that still runs is as old. */
const LEFTOVER_MS = 86_400_000;

/**
 * Lets the private Redis save the queue as it is at one moment, into a file of its own; Redis serves others meanwhile, but for
 * the fork. Returns the file's absolute path. Rejects with 'conflict' if the Redis is not ours.
 */
export async function snapshot(db: Connection, stateDir: string): Promise<string> {
  if (db.shared)
    throw new GryphusError('conflict', `The queue is in a Redis that is not ours, ${db.where}.`, {
      suggestions: ['Back it up with the means of that server.'],
    });
  const dir = join(stateDir, 'redis');
  removeLeftovers(dir);
  const written = join(dir, 'dump.rdb');
  const path = join(dir, `backup-${randomBytes(6).toString('hex')}.rdb`);
  const end = Date.now() + PATIENCE_MS;
  let begun = false;
  for (;;) {
    const info = await db.run((redis) => redis.info('persistence'));
    const busy = /^(?:rdb_bgsave_in_progress|aof_rewrite_in_progress):1/m.test(info);
    if (!busy && begun) {
      if (/^rdb_last_bgsave_status:err/m.test(info)) throw failed(stateDir);
      // Redis renames it when it is whole. Another backup may have taken it.
      if (takeIfThere(written, path)) return path;
    }
    // Refused if another backup was faster.
    if (!busy)
      begun = await db
        .run((redis) => redis.bgsave())
        .then(() => true)
        .catch((thrown: unknown) => {
          // It gives no reason if it cannot fork.
          if (thrown instanceof Error && thrown.message.trim() === 'ERR') throw failed(stateDir);
          return false;
        });
    if (Date.now() > end) throw failed(stateDir);
    await sleep(LOOK_MS);
  }
}

/** Of a backup that was killed. */
function removeLeftovers(dir: string): void {
  for (const name of readdirSync(dir).filter((one) => SNAPSHOT.test(one))) {
    const found = statSync(join(dir, name), { throwIfNoEntry: false });
    if (found && Date.now() - found.mtimeMs > LEFTOVER_MS) rmSync(join(dir, name), { force: true });
  }
}

function takeIfThere(from: string, to: string): boolean {
  if (!existsSync(from)) return false;
  try {
    renameSync(from, to);
    return true;
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT') return false;
    throw thrown;
  }
}

function failed(stateDir: string): GryphusError {
  return new GryphusError('disk-full', `Redis could not save the queue in ${stateDir}.`, {
    suggestions: [`See ${join(stateDir, 'redis/redis.log')}: is the disk full, or the memory?`],
  });
}

/** Where a Redis of any version looks for its data when it starts: an append-only file may begin with a snapshot. */
export function placeSnapshot(rdb: string, stateDir: string): void {
  renameSync(rdb, join(stateDir, 'redis', 'appendonly.aof'));
}
