import { createReadStream } from 'node:fs';
import { type AttemptKey, parseAttemptKey } from '../job/ids.ts';
import { jobPackage, jobScript, sharedBlobs } from './package.ts';
import type { GassHandler, Readable, Writable } from './gass-server.ts';
import type { GramMessage } from './protocol.ts';
import { type GramRecord, type GramStore, isPromised } from './store.ts';
import { tarBytes, type TarEntry, tarStream } from '../staging/tar.ts';

/** The names of an attempt's received files within its directory. */
export const HOME_FILES = { results: 'out', message: 'err', owner: 'live.owner' } as const;
export const liveFile = (stream: string): string => `live.${stream}`;

const LIVE = /^live\/(stdout|stderr)\/(\d{1,15})$/;

export interface GassHandlerOptions {
  readonly store: GramStore;
  /** Called when something of this attempt has arrived. */
  readonly came: (record: GramRecord) => void;
  readonly news: (message: GramMessage) => void;
}

/**
 * What our GASS server offers: under `/KEY/TOKEN/`, `job` can be read, and `out`, `err` and the streams of the running
 * job can be written; content that jobs share can be read under `/shared/`. No path names one of our own files.
 * A job manager that is restarted for another job also runs uncommitted jobs (seen in version 15.8). Their program is
 * therefore withheld, so that none of them starts.
 */
export function openGassHandler({ store, came, news }: GassHandlerOptions): GassHandler {
  const find = (path: string): { readonly record: GramRecord; readonly name: string } | undefined => {
    const [, name = '', token, rest] = /^\/+([^/]+)\/([0-9a-f]{32})\/(.+)$/.exec(path) ?? [];
    if (rest === undefined || parseAttemptKey(name) === undefined) return undefined;
    const record = store.get(name as AttemptKey);
    return record !== undefined && record.token === token ? { record, name: rest } : undefined;
  };
  return {
    async read(path): Promise<Readable | undefined> {
      const [, sha256] = /^\/+shared\/([0-9a-f]{64})$/.exec(path) ?? [];
      if (sha256 !== undefined) return sharedContent(store, sha256);
      const found = find(path);
      if (found?.name !== 'job' || !isPromised(found.record)) return undefined;
      if (!found.record.taken) store.update(found.record.key, { taken: true });
      const script = jobScript();
      const entries = jobPackage(found.record, (sha) => store.contentPath(sha));
      return { bytes: script.length + tarBytes(entries), stream: () => withPackage(script, entries) };
    },
    write(path): Writable | undefined {
      const found = find(path);
      if (found === undefined) return undefined;
      const { record, name } = found;
      const done = () => came(record);
      if (name === 'out') return { path: store.path(record.key, HOME_FILES.results), done };
      if (name === 'err') return { path: store.path(record.key, HOME_FILES.message), done };
      if (name === 'live/owner') return { path: store.path(record.key, HOME_FILES.owner), done };
      const [, stream, offset] = LIVE.exec(name) ?? [];
      if (stream === undefined) return undefined;
      return { path: store.path(record.key, liveFile(stream)), offset: Number(offset), done };
    },
    news,
  };
}

/** Serves only content that belongs to a known job. */
function sharedContent(store: GramStore, sha256: string): Readable | undefined {
  for (const record of store.all()) {
    const blob = sharedBlobs(record).find((one) => one.sha256 === sha256);
    if (blob) return { bytes: blob.bytes, stream: () => createReadStream(store.contentPath(sha256)) };
  }
  return undefined;
}

async function* withPackage(script: Buffer, entries: readonly TarEntry[]): AsyncGenerator<Buffer> {
  yield script;
  yield* tarStream(entries);
}
