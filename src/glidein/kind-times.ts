import type { Attrs } from '../job/attrs.ts';
import { parseJobId } from '../job/ids.ts';
import { inAd, readNumber, readString } from '../job/values.ts';
import { POOL_SITE } from '../config/sites.ts';
import type { EventEntry, Queue } from '../queue/api.ts';
import { GLIDEIN_TIMES } from '../queue/tables.ts';
import { counted } from '../util/plain-text.ts';

/** Jobs with the same requests and the same program are of one kind, and take about the same time. */
export interface JobKind {
  readonly name: string;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly gpus: number;
}

export function kindOf(attrs: Attrs): JobKind {
  const cpus = Math.max(1, Math.ceil(readNumber(attrs, 'RequestCpus') ?? 1));
  const memoryMb = Math.max(0, Math.ceil(readNumber(attrs, 'RequestMemory') ?? 0));
  const gpus = Math.max(0, Math.ceil(readNumber(attrs, 'RequestGPUs') ?? 0));
  const more = gpus === 0 ? '' : `, ${gpus} GPUs`;
  return {
    name: `${readString(attrs, 'Cmd') ?? ''} (${counted(cpus, 'core')}, ${memoryMb} MB${more})`,
    cpus,
    memoryMb,
    gpus,
  };
}

/** The weight of one more job. */
const WEIGHT = 0.2;
/** The most jobs looked up per batch of events: more would not change the result noticeably. */
const MOST = 200;

/**
 * The mean run time of jobs of each kind in the pool, weighted towards recent jobs; stored in the queue, where it is
 * small and durable.
 */
export class KindTimes {
  readonly #queue: Pick<Queue, 'get' | 'kv'>;

  constructor(queue: Pick<Queue, 'get' | 'kv'>) {
    this.#queue = queue;
  }

  async hear(entries: readonly EventEntry[]): Promise<void> {
    const seconds = new Map<string, number>();
    for (const { event } of entries) {
      if (event.type !== 'transition' || event.event !== 'ended') continue;
      const took = readNumber(inAd(event.set), 'LastRemoteWallClockTime');
      if (took !== undefined && took >= 0 && event.set['GryphusSiteCause'] === undefined) seconds.set(event.job, took);
    }
    const ids = [...seconds.keys()].slice(0, MOST).flatMap((name) => parseJobId(name) ?? []);
    if (ids.length === 0) return;
    const means = new Map<string, number>();
    for (const { id, site, attrs } of await this.#queue.get(ids)) {
      const took = seconds.get(`${id.cluster}.${id.proc}`);
      if (site !== POOL_SITE.name || took === undefined) continue;
      const { name } = kindOf(attrs);
      const before = means.get(name) ?? (await this.of(name));
      means.set(name, before === undefined ? took : before + (took - before) * WEIGHT);
    }
    for (const [name, mean] of means) await GLIDEIN_TIMES.set(this.#queue.kv, name, Math.round(mean * 100) / 100);
  }

  /** Seconds; `undefined` if no job of the kind has ended yet. */
  async of(kind: string): Promise<number | undefined> {
    return GLIDEIN_TIMES.get(this.#queue.kv, kind);
  }
}
