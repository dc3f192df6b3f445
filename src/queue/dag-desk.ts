import type { DagDesk, DagEntry } from './api.ts';
import { readStream } from './events.ts';
import { encodeJson } from './record.ts';
import type { Room } from './room.ts';

/** What publish.lua and the prelude's dagEvent() keep for the manager of one DAG. */
export function dagDesk(room: Room, manager: number): DagDesk {
  const stream = `${room.db.prefix}dag:${manager}`;
  const names = `${room.db.prefix}dn:${manager}`;
  return {
    submits: async () => {
      const all = await room.db.run((redis) => redis.hgetall(names));
      return Object.entries(all).map(([name, value]) => {
        const [cluster, procs] = value.split('|').map(Number);
        return { name, cluster: cluster ?? 0, procs: procs ?? 0 };
      });
    },
    read: async (from, options, signal) => (await readStream(room, stream, from, options, signal)) as DagEntry[],
    tell: async (what) => {
      const text = encodeJson({ type: 'told', what });
      await room.db.run((redis) => redis.xadd(stream, '*', 'e', text));
    },
    trim: async (id) => {
      await room.db.run((redis) => redis.xtrim(stream, 'MINID', '~', id));
    },
    drop: async () => {
      await room.db.run((redis) => redis.unlink(stream, names));
    },
  };
}
