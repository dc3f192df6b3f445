import type { QueueMark } from '../job/mark.ts';
import type { Connection } from './redis.ts';

/** The current mark of the queue. */
export async function queueMark(db: Connection): Promise<QueueMark> {
  return (await look(db, '')).now;
}

/**
 * Where this queue diverged from the one that made the mark: the last cluster id that both know. `undefined` if this
 * queue was itself at the mark, or has had so many lives since that it cannot tell.
 */
export async function divergence(db: Connection, seen: QueueMark): Promise<number | undefined> {
  const { now, past, began } = await look(db, seen.life);
  if (seen.life === now.life && seen.run === now.run)
    return seen.events > now.events ? Math.min(now.cluster, seen.cluster) : undefined;
  // This queue never had that life, so the two diverged when its current life began.
  if (seen.life >= now.life) return began;
  if (past === undefined) return undefined;
  if (past.run !== seen.run) return began;
  return seen.events > past.events ? past.cluster : undefined;
}

/** Ids up to this one are already taken: the next cluster gets a higher one. */
export async function skipClusters(db: Connection, upTo: number): Promise<void> {
  await db.script('skip', [upTo]);
}

interface Looked {
  readonly now: QueueMark;
  /** At the end of that life. */
  readonly past: Omit<QueueMark, 'life'> | undefined;
  /** The last cluster id when the current life began. */
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
