import { readFileSync } from 'node:fs';
import { octalEscape } from '../site/escape.ts';
import { blobsOf, specLines } from '../site/spec-lines.ts';
import type { AttemptSpec, Blob } from '../site/contract.ts';
import type { GramRecord } from './store.ts';
import type { TarEntry } from '../staging/tar.ts';

/**
 * Content of at least this many bytes is sent separately, once for all jobs that need it; smaller is cheaper in the
 * package.
 */
const LEAST_SHARED = 64 * 1024;

/**
 * The program that GRAM starts. The package is appended to it because not every adapter gives a job its standard input.
 */
export function jobScript(): Buffer {
  return readFileSync(new URL('gram-job.sh', import.meta.url));
}

/**
 * Content for GRAM to fetch into the site's GASS cache. After a failed start, the job gets all its content inside the
 * package, in case a process died and left the cache locked.
 */
export function sharedBlobs({ spec, losses }: Pick<GramRecord, 'spec' | 'losses'>): readonly Blob[] {
  if (losses > 0) return [];
  const large = blobsOf(spec).filter(({ bytes }) => bytes >= LEAST_SHARED);
  return [...new Map(large.map((blob) => [blob.sha256, blob])).values()];
}

/**
 * Everything else that the job needs at the site, laid out as wrapper.sh expects: record, content, the wrapper itself.
 */
export function jobPackage(record: GramRecord, contentPath: (sha256: string) => string): readonly TarEntry[] {
  const { key, spec } = record;
  const { proxy: _, ...rest } = spec;
  // GRAM gives the job its proxy; the rest is a record without a batch system of ours.
  const lines = specLines(rest, { submitWords: () => [] });
  const blobs = new Map(blobsOf(spec).map((blob) => [blob.sha256, blob]));
  for (const { sha256 } of sharedBlobs(record)) blobs.delete(sha256);
  return [
    { name: 'wrapper.sh', mode: 0o700, content: readFileSync(new URL('../jobmanager/wrapper.sh', import.meta.url)) },
    { name: 'inputs.sh', mode: 0o700, content: readFileSync(new URL('../jobmanager/inputs.sh', import.meta.url)) },
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

/** Comes last, so that its absence shows an incomplete package. It lists the sizes of the content sent separately. */
function wholeFile(record: GramRecord): TarEntry {
  const lines = sharedBlobs(record).map(({ sha256, bytes }) => `${bytes} ${sha256}\n`);
  return { name: 'whole', mode: 0o600, content: Buffer.from(lines.join('')) };
}

/** Which results leave the site: everything new, new files at the top level, or those named. */
function wantedFile(key: string, outputs: AttemptSpec['outputs']): TarEntry[] {
  if (outputs === undefined) return [];
  if (outputs === 'new') return [{ name: `jobs/${key}/top`, mode: 0o600, content: Buffer.alloc(0) }];
  const lines = outputs.map((name) => `${octalEscape(name)}\n`).join('');
  return [{ name: `jobs/${key}/outputs`, mode: 0o600, content: Buffer.from(lines) }];
}
