import { readFileSync } from 'node:fs';
import { octalEscape } from '../jobmanager/escape.ts';
import { blobsOf, specLines } from '../jobmanager/spec.ts';
import type { AttemptSpec } from '../site/contract.ts';
import type { GramRecord } from './store.ts';
import type { TarEntry } from './tar.ts';

/** The program that GRAM starts; the same for every job. */
export function jobScript(): Buffer {
  return readFileSync(new URL('gram-job.sh', import.meta.url));
}

/** All that the job needs at the site, in the shape that wrapper.sh wants: record, content, the wrapper itself. */
export function jobPackage({ key, spec }: GramRecord, contentPath: (sha256: string) => string): readonly TarEntry[] {
  const { proxy: _, ...rest } = spec;
  // GRAM gives the job its proxy; what follows is a record without a batch system of ours.
  const lines = specLines(rest, { submitWords: () => [] });
  const blobs = new Map(blobsOf(spec).map((blob) => [blob.sha256, blob]));
  return [
    { name: 'wrapper.sh', mode: 0o700, content: readFileSync(new URL('../jobmanager/wrapper.sh', import.meta.url)) },
    { name: `jobs/${key}/spec`, mode: 0o600, content: Buffer.from(`${lines.join('\n')}\n`) },
    ...wantedFile(key, spec.outputs),
    ...[...blobs.values()].map(({ sha256, bytes }) => ({
      name: `cache/${sha256}`,
      mode: 0o400,
      content: { path: contentPath(sha256), bytes },
    })),
  ];
}

/** Which results leave the site: all that is new, new files at the top, or what is named. */
function wantedFile(key: string, outputs: AttemptSpec['outputs']): TarEntry[] {
  if (outputs === undefined) return [];
  if (outputs === 'new') return [{ name: `jobs/${key}/top`, mode: 0o600, content: Buffer.alloc(0) }];
  const lines = outputs.map((name) => `${octalEscape(name)}\n`).join('');
  return [{ name: `jobs/${key}/outputs`, mode: 0o600, content: Buffer.from(lines) }];
}
