import { readNumber, readString } from '../job/values.ts';
import type { Queue } from '../queue/api.ts';
import { formatJobId } from '../job/ids.ts';
import type { Selection, Why } from './types.ts';

/** Why no more jobs of a cluster are made for now ('' where somebody held it); `undefined` where nothing is in their way. */
export async function factoryPause(queue: Queue, cluster: number): Promise<string | undefined> {
  const full = await queue.cluster(cluster);
  if (full?.digest === undefined || (readNumber(full.attrs, 'JobMaterializePaused') ?? 0) === 0) return undefined;
  return readString(full.attrs, 'JobMaterializePauseReason') ?? '';
}

/** What is said of jobs of these clusters that are not made, because their cluster is paused. */
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
      summary: `The jobs from here to ${formatJobId(last)} are not made: the cluster is paused.`,
      details: reason === '' ? [] : [reason],
      suggestions: [`gryphus release ${cluster}   # go on`, `gryphus rm ${cluster}`],
    };
  }
}
