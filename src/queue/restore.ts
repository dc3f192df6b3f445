import { Attrs, type AttrTexts } from '../job/attrs.ts';
import type { JobId } from '../job/ids.ts';
import { encodeJson, literal, ownAttrs, plainString, priorityOf, readClusterAd } from './record.ts';
import type { QueueContext } from './context.ts';

/** A job that returns to the queue. */
export interface RestoredJob {
  readonly id: JobId;
  readonly attrs: AttrTexts;
  readonly attempt: number;
  readonly manager: string;
  readonly site: string;
}

/**
 * Puts a job that left the queue back, held, in one step, and its cluster too if that is gone. Returns false if the job
 * is already in the queue.
 */
export async function restore(
  context: QueueContext,
  { id, attrs, attempt, manager, site }: RestoredJob,
): Promise<boolean> {
  const { prefix } = context.db;
  const numbers = await context.names.numbers([manager, site]);
  const whole = new Attrs(attrs);
  for (;;) {
    const ad = await context.db.run((redis) => redis.get(`${prefix}ad:${id.cluster}`));
    const shared = new Attrs(ad === null ? ownAttrs(attrs, new Attrs({})) : readClusterAd(ad, id.cluster));
    const answer = await context.db.script('restore', [
      context.now(),
      id.cluster,
      id.proc,
      ad === null ? 0 : 1,
      numbers.get(manager) ?? '0',
      numbers.get(site) ?? '0',
      priorityOf(whole.get('JobPrio')),
      attempt,
      encodeJson({ ...hiding(shared, whole), ...ownAttrs(attrs, shared) }),
      encodeJson(shared.own),
      plainString(whole.get('Owner')),
      plainString(whole.get('JobBatchName')),
      literal(whole.get('JobUniverse')),
      literal(whole.get('DAGManJobId')),
    ]);
    if (answer !== 'again') return answer === 'ok';
  }
}

/** Attributes that the cluster has and this job does not. */
function hiding(shared: Attrs, whole: Attrs): AttrTexts {
  return Object.fromEntries(
    Object.keys(shared.own)
      .filter((name) => !whole.has(name))
      .map((name) => [name, null]),
  );
}
