import { readFileSync } from 'node:fs';
import { octalEscape } from '../jobmanager/escape.ts';
import { blobsOf, specLines } from '../jobmanager/spec.ts';
import type { AttemptSpec, Blob } from '../site/contract.ts';
import type { GramRecord } from './store.ts';
import type { TarEntry } from './tar.ts';

/** Content of this size or more crosses by itself, once for all jobs that need it; a smaller one is cheaper inside, bytes. */
const LEAST_SHARED = 64 * 1024;

/** The program that GRAM starts. Its package follows it in the same file: not every adapter gives a job its standard input. */
export function jobScript(): Buffer {
  return readFileSync(new URL('gram-job.sh', import.meta.url));
}

/**
 * Content that GRAM is to bring into the site's GASS cache. A job that the site could not begin with has all of it inside
 * its package the next time: a cache that somebody's death left locked is no reason to wait.
 */
export function sharedBlobs({ spec, losses }: Pick<GramRecord, 'spec' | 'losses'>): readonly Blob[] {
  if (losses > 0) return [];
  const large = blobsOf(spec).filter(({ bytes }) => bytes >= LEAST_SHARED);
  return [...new Map(large.map((blob) => [blob.sha256, blob])).values()];
}

/** All else that the job needs at the site, in the shape that wrapper.sh wants: record, content, the wrapper itself. */
export function jobPackage(record: GramRecord, contentPath: (sha256: string) => string): readonly TarEntry[] {
  const { key, spec } = record;
  const { proxy: _, ...rest } = spec;
  // GRAM gives the job its proxy; what follows is a record without a batch system of ours.
  const lines = specLines(rest, { submitWords: () => [] });
  const blobs = new Map(blobsOf(spec).map((blob) => [blob.sha256, blob]));
  for (const { sha256 } of sharedBlobs(record)) blobs.delete(sha256);
  return [
    { name: 'wrapper.sh', mode: 0o700, content: readFileSync(new URL('../jobmanager/wrapper.sh', import.meta.url)) },
    { name: 'ends.sh', mode: 0o700, content: readFileSync(new URL('../util/ends.sh', import.meta.url)) },
    { name: `jobs/${key}/spec`, mode: 0o600, content: Buffer.from(`${lines.join('\n')}\n`) },
    ...wantedFile(key, spec.outputs),
    ...[...blobs.values()].map(({ sha256, bytes }) => ({
      name: `cache/${sha256}`,
      mode: 0o400,
      content: { path: contentPath(sha256), bytes },
    })),
    wholeFile(record),
  ];
}

/** The last: without it, the package did not come whole. It says how long is what came by itself. */
function wholeFile(record: GramRecord): TarEntry {
  const lines = sharedBlobs(record).map(({ sha256, bytes }) => `${bytes} ${sha256}\n`);
  return { name: 'whole', mode: 0o600, content: Buffer.from(lines.join('')) };
}

/** Which results leave the site: all that is new, new files at the top, or what is named. */
function wantedFile(key: string, outputs: AttemptSpec['outputs']): TarEntry[] {
  if (outputs === undefined) return [];
  if (outputs === 'new') return [{ name: `jobs/${key}/top`, mode: 0o600, content: Buffer.alloc(0) }];
  const lines = outputs.map((name) => `${octalEscape(name)}\n`).join('');
  return [{ name: `jobs/${key}/outputs`, mode: 0o600, content: Buffer.from(lines) }];
}
