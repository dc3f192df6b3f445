import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { asError, GryphusError } from '../errors.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, OddOutput, Refusal } from '../site/contract.ts';
import { makeParents, partOf, within } from '../staging/place.ts';
import { STREAM_FILES } from '../staging/streams.ts';
import type { Asking } from './asking.ts';
import type { Attempt } from './attempts.ts';
import { isFull } from './disk-room.ts';
import { blobsOf } from './sandbox.ts';
import type { Ask, OutputFile, RunSpec } from './wire.ts';

const PIECE = 1 << 20;
/** Files up to this size are not verified by a digest of their own: they come in one piece. */
const SMALL = PIECE;

/** Bytes of an input at home for the worker that runs the attempt. Rejects for everything that it was not given. */
export async function inputPiece(spec: RunSpec, ask: Extract<Ask, { what: 'blob' }>): Promise<Buffer> {
  const blob = blobsOf(spec).find(({ sha256 }) => sha256 === ask.sha256);
  if (!blob) throw new Error('that input is not of this job');
  const file = await open(blob.path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(Math.min(ask.bytes, 4 << 20));
    let got = 0;
    while (got < buffer.length) {
      const { bytesRead } = await file.read(buffer, got, buffer.length - got, ask.offset + got);
      if (bytesRead === 0) break;
      got += bytesRead;
    }
    return buffer.subarray(0, got);
  } finally {
    await file.close();
  }
}

/** Brings an ended attempt's results home. `worker`: how its worker is asked; `undefined` while that is away. */
export async function bringHome(
  attempt: Attempt,
  request: FetchRequest,
  worker: Asking | undefined,
): Promise<FetchOutcome> {
  const files: FetchedFile[] = [];
  let missing: readonly string[] = [];
  let odd: readonly OddOutput[] = [];
  try {
    await mkdir(request.into, { recursive: true, mode: 0o700 });
    for (const stream of ['stdout', 'stderr'] as const)
      if (request[stream]) files.push(await bringStream(attempt, request.into, stream, worker));
    const listed = await listFiles(attempt, request.outputs, worker);
    ({ missing, odd } = listed);
    for (const file of listed.files) files.push(await bringFile(attempt, request.into, file, needed(worker)));
  } catch (thrown) {
    const error = asError(thrown);
    if (error instanceof GryphusError && (error.code === 'disk-full' || error.code === 'output-unwritable'))
      throw error;
    if (isFull(error)) throw new GryphusError('disk-full', `${request.into} cannot be written: ${error.message}`);
    return { ok: false, refusal: refusal('later', 'site-busy', `${error.message}.`), missing: [], files };
  }
  if (missing.length + odd.length === 0) return { ok: true, files };
  const words = `The job did not make ${[...missing, ...odd.map(({ name }) => name)].map((name) => `'${name}'`).join(', ')}.`;
  return { ok: false, refusal: refusal('never', 'output-missing', words), missing, odd, files };
}

function refusal(kind: Refusal['kind'], code: Refusal['code'], message: string): Refusal {
  return { kind, code, message };
}

function needed(worker: Asking | undefined): Asking {
  if (!worker) throw new GryphusError('site-unreachable', 'its worker is away');
  return worker;
}

async function listFiles(
  attempt: Attempt,
  outputs: readonly string[] | 'new',
  worker: Asking | undefined,
): Promise<{
  readonly files: readonly OutputFile[];
  readonly missing: readonly string[];
  readonly odd: readonly OddOutput[];
}> {
  if (outputs !== 'new' && outputs.length === 0) return { files: [], missing: [], odd: [] };
  // All that is new was told with the end, where it was little.
  const known = attempt.files;
  if (outputs === 'new' && known?.every(({ bytes }) => bytes <= SMALL)) return { files: known, missing: [], odd: [] };
  const answer = await needed(worker).ask({ what: 'files', key: attempt.key, outputs, digests: true });
  return { files: answer.files ?? [], missing: answer.missing ?? [], odd: answer.odd ?? [] };
}

async function bringStream(
  attempt: Attempt,
  into: string,
  stream: 'stdout' | 'stderr',
  worker: Asking | undefined,
): Promise<FetchedFile> {
  const path = join(into, STREAM_FILES[stream]);
  const inline = attempt.inline?.[stream];
  if (inline) await writeFile(path, inline, { mode: 0o600 });
  else await pull(attempt, stream, path, await sizeOf(path), needed(worker));
  return { name: stream, kind: stream, path, bytes: await sizeOf(path), executable: false };
}

async function bringFile(attempt: Attempt, into: string, file: OutputFile, worker: Asking): Promise<FetchedFile> {
  const path = within(into, file.name);
  await makeParents(into, path);
  const part = partOf(path);
  const source = `work/${file.name}`;
  await pull(attempt, source, part, file.bytes > SMALL ? await sizeOf(part) : 0, worker);
  if (file.sha256 !== undefined && (await digestOf(part)) !== file.sha256) {
    await rm(part, { force: true });
    throw new GryphusError('protocol-error', `${file.name} did not come home whole`);
  }
  await chmod(part, file.executable ? 0o700 : 0o600);
  await rename(part, path);
  const { name, executable, mode } = file;
  const bytes = await sizeOf(path);
  return { name, kind: 'output', path, bytes, executable, ...(mode === undefined ? {} : { mode }) };
}

/** Goes on at the byte where an earlier try stopped. */
async function pull(attempt: Attempt, source: string, path: string, from: number, worker: Asking): Promise<void> {
  const file = await open(path, from > 0 ? 'r+' : 'w', 0o600);
  try {
    for (let offset = from; ; ) {
      const { bytes } = await worker.ask({ what: 'read', key: attempt.key, path: source, offset, bytes: PIECE });
      await file.write(bytes, 0, bytes.length, offset);
      offset += bytes.length;
      if (bytes.length < PIECE) return await file.truncate(offset);
    }
  } finally {
    await file.close();
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}
