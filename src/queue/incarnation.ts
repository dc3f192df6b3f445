import type { QueueMark } from '../job/mark.ts';
import type { Connection } from './redis.ts';

/** How far the queue is. */
export async function queueMark(db: Connection): Promise<QueueMark> {
  return (await look(db, '')).now;
}

/**
 * Where this queue and the one that made the mark went apart, as the last cluster id that both know; `undefined` where this one has
 * been at the mark itself, or has lived so long since that nobody can say.
 */
export async function divergence(db: Connection, seen: QueueMark): Promise<number | undefined> {
  const { now, past, began } = await look(db, seen.life);
  if (seen.life === now.life && seen.run === now.run)
    return seen.events > now.events ? Math.min(now.cluster, seen.cluster) : undefined;
  // Of a life of that number, or of a later one, this queue knows nothing: it is as it was when its present life began.
  if (seen.life >= now.life) return began;
  if (past === undefined) return undefined;
  if (past.run !== seen.run) return began;
  return seen.events > past.events ? past.cluster : undefined;
}

/** The ids up to this one were given before: the next cluster has a higher one. */
export async function skipClusters(db: Connection, upTo: number): Promise<void> {
  await db.script('skip', [upTo]);
}

interface Looked {
  readonly now: QueueMark;
  /** At its end. */
  readonly past: Omit<QueueMark, 'life'> | undefined;
  /** The last cluster id when the present life began. */
  readonly began: number;
}

async function look(db: Connection, life: number | ''): Promise<Looked> {
  const info = await db.run((redis) => redis.info('server'));
  const run = /^run_id:([A-Za-z0-9]+)/m.exec(info)?.[1] ?? '0';
  const answer = ((await db.script('life', [run, life])) as (string | number)[]).map(String);
  const [now = '', name = '', events = '', cluster = '', past = '', had = '', last = '', began = ''] = answer;
  return {
    now: { life: Number(now), run: name, events: Number(events), cluster: Number(cluster) },
    past: past === '' ? undefined : { run: past, events: Number(had), cluster: Number(last) },
    began: Number(began),
  };
}
