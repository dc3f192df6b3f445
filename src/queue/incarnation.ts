import type { QueueMark } from '../job/mark.ts';
import { textsOf } from './answers.ts';
import type { Connection } from './redis.ts';

/** The current mark of the queue. */
export async function queueMark(db: Connection): Promise<QueueMark> {
  return (await look(db, '')).now;
}

/**
 * Where this queue diverged from the one that made the mark: the last cluster id that both know. `undefined` if this
 * queue was itself at the mark, or has had so many incarnations since that it cannot tell.
 */
export async function divergence(db: Connection, seen: QueueMark): Promise<number | undefined> {
  const { now, past, began } = await look(db, seen.incarnation);
  if (seen.incarnation === now.incarnation && seen.run === now.run)
    return seen.events > now.events ? Math.min(now.cluster, seen.cluster) : undefined;
  // This queue never had that incarnation, so the two diverged when its current incarnation began.
  if (seen.incarnation >= now.incarnation) return began;
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
  /** At the end of that incarnation. */
  readonly past: Omit<QueueMark, 'incarnation'> | undefined;
  /** The last cluster id when the current incarnation began. */
  readonly began: number;
}

async function look(db: Connection, incarnation: number | ''): Promise<Looked> {
  const info = await db.run((redis) => redis.info('server'));
  const run = /^run_id:([A-Za-z0-9]+)/m.exec(info)?.[1] ?? '0';
  const answer = textsOf(await db.script('incarnation', [run, incarnation]));
  const [now = '', name = '', events = '', cluster = '', past = '', had = '', last = '', began = ''] = answer;
  return {
    now: { incarnation: Number(now), run: name, events: Number(events), cluster: Number(cluster) },
    past: past === '' ? undefined : { run: past, events: Number(had), cluster: Number(last) },
    began: Number(began),
  };
}
