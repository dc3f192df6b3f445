import type { DagStream, DagEntry } from './api.ts';
import { isQueueEvent } from '../job/events.ts';
import { readStream } from './events.ts';
import { encodeJson } from './record.ts';
import type { QueueContext } from './context.ts';

/** What publish.lua and the prelude's dagEvent() keep for the manager of one DAG. */
export function dagStream(context: QueueContext, manager: number): DagStream {
  const stream = `${context.db.prefix}dag:${manager}`;
  const names = `${context.db.prefix}dn:${manager}`;
  return {
    submits: async () => {
      const all = await context.db.run((redis) => redis.hgetall(names));
      return Object.entries(all).map(([name, value]) => {
        const [cluster, procs] = value.split('|').map(Number);
        return { name, cluster: cluster ?? 0, procs: procs ?? 0 };
      });
    },
    read: (from, options, signal) => readStream(context, stream, isDagEvent, from, options, signal),
    tell: async (what) => {
      const text = encodeJson({ type: 'told', what });
      await context.db.run((redis) => redis.xadd(stream, '*', 'e', text));
    },
    trim: async (id) => {
      await context.db.run((redis) => redis.xtrim(stream, 'MINID', '~', id));
    },
    drop: async () => {
      await context.db.run((redis) => redis.unlink(stream, names));
    },
  };
}

function isDagEvent(value: unknown): value is DagEntry['event'] {
  if (typeof value === 'object' && value !== null && 'type' in value && value.type === 'told') return 'what' in value;
  return isQueueEvent(value);
}
