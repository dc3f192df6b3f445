import { readNumber, readString } from '../job/values.ts';
import type { Queue } from '../queue/api.ts';
import { formatJobId } from '../job/ids.ts';
import type { Selection, Why } from './types.ts';

/** Why a cluster makes no more jobs for now ('' if a user holds it); `undefined` if it is not paused. */
export async function factoryPause(queue: Queue, cluster: number): Promise<string | undefined> {
  const full = await queue.cluster(cluster);
  if (full?.digest === undefined || (readNumber(full.attrs, 'JobMaterializePaused') ?? 0) === 0) return undefined;
  return readString(full.attrs, 'JobMaterializePauseReason') ?? '';
}

/** Explains jobs of these clusters that are not made because their cluster is paused. */
export async function* whyNotMade(queue: Queue, { clusters, constraint }: Selection): AsyncGenerator<Why> {
  if (clusters === undefined || constraint !== undefined) return;
  for (const { cluster, nextProc, total } of await queue.unmaterialized()) {
    if (!clusters.includes(cluster)) continue;
    const reason = await factoryPause(queue, cluster);
    if (reason === undefined) continue;
    const last = { cluster, proc: total - 1 };
    yield {
      id: { cluster, proc: nextProc },
      state: 'held',
      summary: `The jobs from here to ${formatJobId(last)} are not materialized: the cluster is paused.`,
      details: reason === '' ? [] : [reason],
      suggestions: [`gryphus release ${cluster}   # resume`, `gryphus rm ${cluster}`],
    };
  }
}
