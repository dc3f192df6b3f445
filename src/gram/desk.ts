import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import { jobPackage, jobScript } from './package.ts';
import type { GassDesk, Readable, Writable } from './gass-server.ts';
import type { Message } from './protocol.ts';
import type { GramRecord, GramStore } from './store.ts';
import { tarBytes, tarStream } from './tar.ts';

/** The names under which an attempt's files come home, in its directory. */
export const HOME_FILES = { results: 'out', words: 'err', owner: 'live.owner' } as const;
export const liveFile = (stream: string): string => `live.${stream}`;

const LIVE = /^live\/(stdout|stderr)\/(\d{1,15})$/;

export interface DeskOptions {
  readonly store: GramStore;
  /** Something of this attempt came home. */
  readonly came: (record: GramRecord) => void;
  readonly news: (message: Message) => void;
}

/**
 * What our GASS server gives and takes: under `/KEY/TOKEN/`, `job` and `in` are read, `out`, `err` and the streams of the
 * running job are written. No path names a file of ours.
 */
export function gassDesk({ store, came, news }: DeskOptions): GassDesk {
  const find = (path: string): { readonly record: GramRecord; readonly name: string } | undefined => {
    const [, name = '', token, rest] = /^\/+([^/]+)\/([0-9a-f]{32})\/(.+)$/.exec(path) ?? [];
    if (rest === undefined || parseAttemptKey(name) === undefined) return undefined;
    const record = store.get(name as AttemptKey);
    return record !== undefined && record.token === token ? { record, name: rest } : undefined;
  };
  return {
    async read(path): Promise<Readable | undefined> {
      const found = find(path);
      if (found?.name === 'job') {
        const script = jobScript();
        return { bytes: script.length, stream: () => [script] };
      }
      if (found?.name !== 'in') return undefined;
      const entries = jobPackage(found.record, (sha256) => store.contentPath(sha256));
      return { bytes: tarBytes(entries), stream: () => tarStream(entries) };
    },
    write(path): Writable | undefined {
      const found = find(path);
      if (found === undefined) return undefined;
      const { record, name } = found;
      const done = () => came(record);
      if (name === 'out') return { path: store.path(record.key, HOME_FILES.results), done };
      if (name === 'err') return { path: store.path(record.key, HOME_FILES.words), done };
      if (name === 'live/owner') return { path: store.path(record.key, HOME_FILES.owner), done };
      const [, stream, offset] = LIVE.exec(name) ?? [];
      if (stream === undefined) return undefined;
      return { path: store.path(record.key, liveFile(stream)), offset: Number(offset), done };
    },
    news,
  };
}
