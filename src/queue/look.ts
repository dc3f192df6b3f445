import { IdSet } from '../job/id-set.ts';
import type { History, HistoryRecord, LookWish, Sighting } from './api.ts';
import { queryChunks } from './query.ts';
import type { QueueContext } from './context.ts';

/** Jobs of the history in one chunk. */
const PIECE = 500;

/**
 * Finds each job exactly once, in the queue or, if it has left that, in the history. The queue is read first. A job is
 * on disk in the history before it leaves the queue, so a job that moves in the meantime is still found in one of the
 * two; jobs found in the queue are skipped in the history. A job that returns from the history (`restore`) leaves its
 * record there. Each job is matched against the wishes as it was when it was found.
 */
export async function* look(
  context: QueueContext,
  history: History,
  wishes: readonly LookWish[],
  limit = Number.POSITIVE_INFINITY,
): AsyncIterable<Sighting> {
  let left = limit;
  const met = new IdSet();
  const given = new IdSet();
  for (const { where, ...wish } of wishes) {
    if (left <= 0) return;
    for await (const jobs of queryChunks(context, wish)) {
      for (const { id } of jobs) met.add(id);
      const some = jobs.filter((job) => (!where || where(job)) && given.add(job.id)).slice(0, left);
      if (some.length > 0) yield { in: 'queue', jobs: some };
      left -= some.length;
      if (left <= 0) return;
    }
  }
  const [first, ...or] = wishes;
  if (!first) return;
  const piece: HistoryRecord[] = [];
  for await (const job of history.read({ ...first, or, but: met, once: true, limit: left })) {
    piece.push(job);
    if (piece.length >= PIECE) yield { in: 'history', jobs: piece.splice(0) };
  }
  if (piece.length > 0) yield { in: 'history', jobs: piece };
}
