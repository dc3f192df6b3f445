import { randomBytes } from 'node:crypto';
import { GryphusError } from '../errors.ts';
import { queueMark } from './incarnation.ts';
import type { Connection } from './redis.ts';

/**
 * The version of the stored state that this program writes. A change that an older program would misread increments it.
 */
const VERSION = 2;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/**
 * The agent's id, created once. Rejects with 'state-version' if a newer program wrote the state, or if daemons of an
 * older program still use it.
 */
export async function openMeta(db: Connection, now: () => number): Promise<string> {
  const key = `${db.prefix}meta`;
  const [version, known] = await db.run((redis) => redis.hmget(key, 'version', 'agent'));
  if (version !== null && version !== undefined && Number(version) > VERSION) {
    throw new GryphusError(
      'state-version',
      `The queue at ${db.where} was written by a newer Gryphus (state version ${version}, this one supports ${VERSION}).`,
      { suggestions: ['Use that newer Gryphus, or another state directory (GRYPHUS_HOME).'] },
    );
  }
  if (version === '1') await upgrade(db, now());
  const agent = version && known ? known : await makeAgent(db, key);
  // If the server was restarted, this begins another incarnation of the queue before anything in it is changed.
  await queueMark(db);
  return agent;
}

async function upgrade(db: Connection, now: number): Promise<void> {
  if ((await db.script('upgrade', [now])) === 1) return;
  throw new GryphusError('state-version', 'The daemons of an older Gryphus are running here.', {
    suggestions: ['Stop them with `gryphus down` (jobs keep running), then run this again.'],
  });
}

async function makeAgent(db: Connection, key: string): Promise<string> {
  const agent = await db.run(async (redis) => {
    await redis.hsetnx(key, 'agent', newAgent());
    await redis.hsetnx(key, 'version', String(VERSION));
    return redis.hget(key, 'agent');
  });
  return agent ?? '';
}

function newAgent(): string {
  // 248 is the largest multiple of 62 that fits into a byte, so every letter is equally likely.
  const bytes = [...randomBytes(64)].filter((byte) => byte < 248);
  return bytes
    .slice(0, 10)
    .map((byte) => LETTERS[byte % 62])
    .join('');
}
