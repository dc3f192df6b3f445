import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { asError, GryphusError } from '../../errors.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, OddOutput, Refusal } from '../../site/contract.ts';
import { askedFor } from '../../staging/asked-for.ts';
import { keepFloor } from '../../staging/disk-floor.ts';
import { makeParents, partOf, within } from '../../staging/place.ts';
import { STREAM_FILES } from '../../staging/streams.ts';
import type { Asking } from '../wire/asking.ts';
import type { Attempt } from './attempts.ts';
import { isFull } from '../host/full-disk.ts';
import { blobsOf } from '../wire/run-blobs.ts';
import type { WireAnswer, WireAsk, OutputFile, RunSpec } from '../wire/wire.ts';

const PIECE = 1 << 20;
/** Files up to this size, in bytes, are not verified by a digest, since they arrive in one piece. */
const SMALL = PIECE;

/** A piece of an input for the worker that runs the attempt. Rejects if the input does not belong to that job. */
export async function inputPiece(spec: RunSpec, ask: Extract<WireAsk, { what: 'blob' }>): Promise<Buffer> {
  const blob = blobsOf(spec).find(({ sha256 }) => sha256 === ask.sha256);
  if (!blob) throw new Error('that is not an input of this job');
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

/** The source and destination of an attempt's results. */
interface ResultTransfer {
  readonly attempt: Attempt;
  readonly request: FetchRequest;
  /** Asks its worker; `undefined` while the worker is away. */
  readonly worker: Asking | undefined;
  /** Whether someone still wants the results. */
  readonly wanted: () => boolean;
}

/**
 * Brings an ended attempt's results home: only what was requested, and no more bytes than its worker announced. Rejects
 * with 'disk-full' or 'output-unwritable' if they cannot be written here, and with 'protocol-error' if the worker
 * delivers something other than it announced.
 */
export async function bringHome(resultTransfer: ResultTransfer): Promise<FetchOutcome> {
  const { request } = resultTransfer;
  const files: FetchedFile[] = [];
  let listed: Listed = { files: [], missing: [], odd: [] };
  try {
    await mkdir(request.into, { recursive: true, mode: 0o700 });
    for (const stream of ['stdout', 'stderr'] as const)
      if (request[stream]) files.push(await bringStream(resultTransfer, stream));
    listed = await listFiles(resultTransfer);
    for (const file of listed.files) files.push(await bringFile(resultTransfer, file));
  } catch (thrown) {
    const error = asError(thrown);
    if (error instanceof GryphusError && FATAL.has(error.code)) throw error;
    if (isFull(error)) throw new GryphusError('disk-full', `${request.into} cannot be written: ${error.message}`);
    return { ok: false, refusal: refusal('later', 'site-busy', `${error.message}.`), missing: [], files };
  }
  const { missing, odd } = listed;
  if (missing.length + odd.length === 0) return { ok: true, files };
  const message = `The job did not create ${[...missing, ...odd.map(({ name }) => name)].map((name) => `'${name}'`).join(', ')}.`;
  return { ok: false, refusal: refusal('never', 'output-missing', message), missing, odd, files };
}

const FATAL: ReadonlySet<string> = new Set(['disk-full', 'output-unwritable', 'protocol-error']);

function refusal(kind: Refusal['kind'], code: Refusal['code'], message: string): Refusal {
  return { kind, code, message };
}

function needed({ worker }: ResultTransfer): Asking {
  if (!worker) throw new GryphusError('site-unreachable', 'its worker is not connected');
  return worker;
}

interface Listed {
  /** Under the names that they have at home. */
  readonly files: readonly (OutputFile & { readonly offered: string })[];
  readonly missing: readonly string[];
  readonly odd: readonly OddOutput[];
}

/** The maximum number of unrequested names that are reported. */
const MOST_TOLD = 10;

async function listFiles(resultTransfer: ResultTransfer): Promise<Listed> {
  const { request } = resultTransfer;
  const { outputs } = request;
  if (outputs !== 'new' && outputs.length === 0) return { files: [], missing: [], odd: [] };
  const asked = askedFor(request);
  const said = await offered(resultTransfer);
  const files = new Map<string, Listed['files'][number]>();
  const odd: OddOutput[] = [];
  for (const file of said.files ?? []) {
    const name = asked(file.name);
    if (name !== undefined) files.set(name, { ...file, name, offered: file.name });
    else if (odd.length < MOST_TOLD) odd.push({ name: file.name, is: 'unasked' });
  }
  for (const one of said.odd ?? []) {
    const name = asked(one.name);
    if (name !== undefined && one.is !== 'unasked') odd.push({ name, is: one.is });
  }
  const missing = (said.missing ?? []).filter((name) => outputs !== 'new' && outputs.includes(name));
  return { files: [...files.values()], missing, odd };
}

/** If the new files were few and small, they were listed in the report of the end. */
async function offered(
  resultTransfer: ResultTransfer,
): Promise<Pick<Extract<WireAnswer, { ok: true }>, 'files' | 'missing' | 'odd'>> {
  const { attempt, request } = resultTransfer;
  const known = attempt.files;
  if (request.outputs === 'new' && known?.every(({ bytes }) => bytes <= SMALL)) return { files: known };
  return needed(resultTransfer).ask({ what: 'files', key: attempt.key, outputs: request.outputs, digests: true });
}

async function bringStream(resultTransfer: ResultTransfer, stream: 'stdout' | 'stderr'): Promise<FetchedFile> {
  const { attempt, request } = resultTransfer;
  const path = join(request.into, STREAM_FILES[stream]);
  const inline = attempt.inline?.[stream];
  if (inline) await writeFile(path, inline, { mode: 0o600 });
  else {
    const bytes = attempt.ending?.[`${stream}Bytes`] ?? 0;
    // What the program wrote is at its worker, even if it was not counted.
    needed(resultTransfer);
    await pull(resultTransfer, { source: stream, path, from: await sizeOf(path), bytes });
  }
  return { name: stream, kind: stream, path, bytes: await sizeOf(path), executable: false };
}

async function bringFile(resultTransfer: ResultTransfer, file: Listed['files'][number]): Promise<FetchedFile> {
  const { into } = resultTransfer.request;
  const path = within(into, file.name);
  await makeParents(into, path);
  const part = partOf(path);
  const source = `work/${file.offered}`;
  await pull(resultTransfer, {
    source,
    path: part,
    from: file.bytes > SMALL ? await sizeOf(part) : 0,
    bytes: file.bytes,
  });
  if (file.sha256 !== undefined && (await digestOf(part)) !== file.sha256) {
    await rm(part, { force: true });
    throw lie(resultTransfer.attempt, `sent a different '${file.name}' than it announced`);
  }
  await chmod(part, file.executable ? 0o700 : 0o600);
  await rename(part, path);
  const { name, executable, mode } = file;
  const bytes = await sizeOf(path);
  return { name, kind: 'output', path, bytes, executable, ...(mode === undefined ? {} : { mode }) };
}

interface Pulled {
  readonly source: string;
  readonly path: string;
  /** The offset where an earlier attempt to fetch it stopped. */
  readonly from: number;
  /** The size that its worker announced. */
  readonly bytes: number;
}

async function pull(resultTransfer: ResultTransfer, { source, path, from, bytes: all }: Pulled): Promise<void> {
  const { attempt, wanted } = resultTransfer;
  const begin = from > all ? 0 : from;
  const file = await open(path, begin > 0 ? 'r+' : 'w', 0o600);
  try {
    let offset = begin;
    while (offset < all) {
      if (!wanted()) throw new GryphusError('interrupted', 'it is no longer needed');
      await keepFloor(dirname(path));
      const ask = { what: 'read', key: attempt.key, path: source, offset, bytes: PIECE } as const;
      const { bytes } = await needed(resultTransfer).ask(ask);
      if (bytes.length > PIECE || offset + bytes.length > all)
        throw lie(attempt, `sent more of ${source} than it announced`);
      if (bytes.length === 0) throw lie(attempt, `sent less of ${source} than it announced`);
      await file.write(bytes, 0, bytes.length, offset);
      offset += bytes.length;
    }
    await file.truncate(offset);
  } finally {
    await file.close();
  }
}

function lie({ host }: Attempt, what: string): GryphusError {
  return new GryphusError('protocol-error', `Its worker${host === undefined ? '' : ` ${host}`} ${what}.`);
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}
