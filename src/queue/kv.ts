import type { Kv, KvEntry } from './api.ts';
import type { Room } from './room.ts';

/** Each namespace is a hash of `version|value`. */
export function openKv(room: Room): Kv {
  const hash = (namespace: string) => `${room.db.prefix}kv:${namespace}`;
  return {
    get: async (namespace, key) => {
      const text = await room.db.run((redis) => redis.hget(hash(namespace), key));
      return text === null ? undefined : entry(key, text);
    },
    list: async (namespace) => {
      const all = await room.db.run((redis) => redis.hgetall(hash(namespace)));
      return Object.entries(all).map(([key, text]) => entry(key, text));
    },
    set: async (namespace, key, value, ifVersion) => {
      const version = await room.db.script('kv', [namespace, key, value, ifVersion ?? '']);
      return version === null ? undefined : Number(version);
    },
    delete: async (namespace, key) => {
      await room.db.run((redis) => redis.hdel(hash(namespace), key));
    },
  };
}

function entry(key: string, text: string): KvEntry {
  const cut = text.indexOf('|');
  return { key, value: text.slice(cut + 1), version: Number(text.slice(0, cut)) };
}
