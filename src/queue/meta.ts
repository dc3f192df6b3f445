import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { Holder } from '../job/mark.ts';
import { crashPoint } from '../util/crash-point.ts';
import { newerState, STATE_VERSION } from '../util/state-version.ts';
import { queueMark } from './incarnation.ts';
import type { Connection } from './redis.ts';

/** How long the leases of daemons that were killed are waited for, in milliseconds: they last 25 s. */
const LEASES_MS = 30_000;
const LOOK_MS = 200;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

export interface Meta {
  /** The agent's id, created once, or taken over by `takeOver`. */
  readonly agent: string;
  readonly holder: Holder;
}

/**
 * Who this queue is. Rejects with 'state-version' if a newer program wrote the state, or if daemons of an
 * older program still use it; `patient`: not before the leases of killed ones would have ended.
 */
export async function openMeta(db: Connection, now: () => number, patient: boolean): Promise<Meta> {
  const key = `${db.prefix}meta`;
  const [version, known] = await db.run((redis) => redis.hmget(key, 'version', 'agent'));
  if (Number(version ?? 0) > STATE_VERSION) throw newerState(`The queue at ${db.where}`, String(version));
  if (version && Number(version) < STATE_VERSION) await upgrade(db, now, patient ? LEASES_MS : 0);
  const agent = version && known ? known : await makeAgent(db, key);
  // If the server was restarted, this begins another incarnation of the queue before anything in it is changed.
  await queueMark(db);
  return { agent, holder: await holderOf(db, key) };
}

async function holderOf(db: Connection, key: string): Promise<Holder> {
  const [epoch, name] = await db.run(async (redis) => {
    await redis.hsetnx(key, 'holder', newAgent());
    return redis.hmget(key, 'epoch', 'holder');
  });
  return { epoch: Number(epoch ?? 1), name: name ?? '' };
}

/**
 * Makes this queue the one that serves `agent`, from `epoch` on. Returns false, and changes nothing, if it ever had a
 * cluster of another agent, or serves a later epoch. What has it open goes on with the former id.
 */
export async function takeOver(db: Connection, agent: string, epoch: number): Promise<boolean> {
  return (await db.script('take-over', [agent, epoch, newAgent()])) === 1;
}

/** One script, and so all or nothing, whenever this process or Redis dies. */
async function upgrade(db: Connection, now: () => number, patienceMs: number): Promise<void> {
  crashPoint('queue.carrying');
  for (const end = performance.now() + patienceMs; ; await sleep(LOOK_MS)) {
    if ((await db.script('upgrade', [now(), STATE_VERSION])) === 1) return crashPoint('queue.carried-over');
    if (performance.now() > end) break;
  }
  throw new GryphusError('state-version', 'The daemons of an older Gryphus are running here.', {
    suggestions: ['Stop them with `gryphus down` (jobs keep running), then run this again.'],
  });
}

async function makeAgent(db: Connection, key: string): Promise<string> {
  const agent = await db.run(async (redis) => {
    await redis.hsetnx(key, 'agent', newAgent());
    await redis.hsetnx(key, 'version', String(STATE_VERSION));
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
