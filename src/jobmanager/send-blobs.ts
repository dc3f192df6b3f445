import { readFile } from 'node:fs/promises';
import { asError, GryphusError } from '../errors.ts';
import type { Blob, Outcome } from '../site/contract.ts';
import type { PutOptions } from '../transport/contract.ts';
import { homeOf } from './hello.ts';
import { refuse, type JobManagerContext, words, answerFields } from './site-context.ts';

/** Content up to this size, in bytes, is sent together inside a request. */
const SMALL = 256 * 1024;
/** The most bytes in one such request: on a slow line, other requests wait for it. */
const BUNDLE = 2 * 1024 * 1024;

/**
 * Sends content to the site's cache; the site checks its SHA-256 before accepting it. Large content may still be on its
 * way when this resolves (content.ts). Returns refusals by hash. Rejects if the site cannot be reached.
 */
export async function sendBlobs(site: JobManagerContext, blobs: readonly Blob[]): Promise<Map<string, Outcome>> {
  const failed = new Map<string, Outcome>();
  let bundle: { blob: Blob; bytes: Buffer }[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    if (bundle.length === 0) return;
    const names = words(bundle.map(({ blob }) => `${blob.sha256}:${blob.bytes}`));
    const answer = await site.session.exchange('blobs', [names, Buffer.concat(bundle.map(({ bytes }) => bytes))]);
    const byHash = new Map(bundle.map(({ blob }) => [blob.sha256, blob]));
    for (const [sha = ''] of answerFields(answer, 'bad')) failed.set(sha, spoilt(site, byHash.get(sha)));
    bundle = [];
    size = 0;
  };
  for (const blob of blobs) {
    if (blob.bytes > SMALL) continue;
    const bytes = await readFile(blob.path).catch(asError);
    if (bytes instanceof Error)
      failed.set(blob.sha256, refuse('never', 'input-missing', `${blob.path}: ${bytes.message}`));
    else if (bytes.length !== blob.bytes) failed.set(blob.sha256, changed(blob));
    else {
      bundle.push({ blob, bytes });
      size += bytes.length;
    }
    if (size >= BUNDLE) await flush();
  }
  await flush();
  await site.content.send(blobs.filter(({ bytes }) => bytes > SMALL));
  return failed;
}

/** Sends one file by itself, resuming where it was interrupted. */
export async function carryLarge(
  site: JobManagerContext,
  blob: Blob,
  options: PutOptions,
): Promise<Outcome | undefined> {
  const home = homeOf(await site.session.hello());
  try {
    await site.transport.put(blob.path, `${home}/in/${blob.sha256}`, options);
  } catch (thrown) {
    const error = asError(thrown);
    if (!(error instanceof GryphusError)) throw error;
    if (error.code === 'input-missing') return refuse('never', 'input-missing', error.message);
    if (error.code === 'disk-full') return refuse('later', 'disk-full', error.message);
    throw error;
  }
  // Reading 100 GB takes a while.
  const answer = await site.session.exchange('admit', [blob.sha256], [], 120_000 + blob.bytes / 10_000);
  return answerFields(answer, 'stored').length > 0 ? undefined : spoilt(site, blob);
}

/** The bytes that arrived do not match the hash: the disk there is full, or the file here has changed. */
function spoilt(site: JobManagerContext, blob: Blob | undefined): Outcome {
  return refuse(
    'later',
    'disk-full',
    `${blob?.path} did not arrive complete at ${site.name}: the disk there is full, or the file was changed.`,
  );
}

function changed(blob: Blob): Outcome {
  return refuse('never', 'input-missing', `${blob.path} was changed while it was being sent.`);
}
