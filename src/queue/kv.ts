import type { Kv, KvEntry } from './api.ts';
import type { QueueContext } from './context.ts';

/** Each namespace is a hash of `version|value`. */
export function openKv(context: QueueContext): Kv {
  const hash = (namespace: string) => `${context.db.prefix}kv:${namespace}`;
  return {
    get: async (namespace, key) => {
      const text = await context.db.run((redis) => redis.hget(hash(namespace), key));
      return text === null ? undefined : entry(key, text);
    },
    list: async (namespace) => {
      const all = await context.db.run((redis) => redis.hgetall(hash(namespace)));
      return Object.entries(all).map(([key, text]) => entry(key, text));
    },
    set: async (namespace, key, value, ifVersion) => {
      const version = await context.db.script('kv', [namespace, key, value, ifVersion ?? '']);
      return version === null ? undefined : Number(version);
    },
    delete: async (namespace, key) => {
      await context.db.run((redis) => redis.hdel(hash(namespace), key));
    },
  };
}

function entry(key: string, text: string): KvEntry {
  const cut = text.indexOf('|');
  return { key, value: text.slice(cut + 1), version: Number(text.slice(0, cut)) };
}
