import { createHash } from 'node:crypto';
import { chmod, mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { asError, GryphusError } from '../../errors.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, OddOutput, Refusal } from '../../site/contract.ts';
import { askedFor } from '../../staging/asked-for.ts';
import { keepFloor } from '../../staging/disk-floor.ts';
import { makeParents, partOf, within } from '../../staging/place.ts';
import { SmallSaver } from '../../staging/save-small.ts';
import { sha256Of } from '../../staging/sha256.ts';
import { STREAM_FILES } from '../../staging/streams.ts';
import type { Asking } from '../wire/asking.ts';
import { Arriving } from './arriving.ts';
import type { Attempt } from './attempts.ts';
import { isFull } from '../host/full-disk.ts';
import { pieces } from '../wire/pieces.ts';
import { blobOf } from '../wire/run-blobs.ts';
import { type StagingLink, WORTH_A_LINK } from '../wire/staging-link.ts';
import type { WireAnswer, WireAsk, OutputFile, RunSpec } from '../wire/wire.ts';

/** Files up to this size, in bytes, arrive in one piece: if they were listed early, they are not verified by a digest. */
const SMALL = 1 << 20;
/** How many of them are asked for at once: each takes a round trip. */
const AT_ONCE = 32;
/** The free space of this disk is checked after this many bytes. */
const CHECK_BYTES = 8 << 20;

/** A piece of an input for the worker that runs the attempt. Rejects if the input does not belong to that job. */
export async function inputPiece(spec: RunSpec, ask: Extract<WireAsk, { what: 'blob' }>): Promise<Buffer> {
  const blob = blobOf(spec, ask.sha256);
  if (!blob) throw new Error('that is not an input of this job');
  const file = await open(blob.path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(ask.bytes, 4 << 20, blob.bytes - ask.offset)));
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
interface WantedResults {
  readonly attempt: Attempt;
  readonly request: FetchRequest;
  /** Asks its worker; `undefined` while the worker is away. */
  readonly worker: Asking | undefined;
  /** Whether someone still wants the results. */
  readonly wanted: () => boolean;
  /** Has a worker that makes such connections connect for its large files; `undefined` if it cannot. */
  readonly connect?: (() => Promise<StagingLink | undefined>) | undefined;
}

interface ResultTransfer extends WantedResults {
  /** The connection for its large files, if there is one. */
  readonly link: () => Promise<StagingLink | undefined>;
}

/**
 * Brings an ended attempt's results home: only what was requested, and no more bytes than its worker announced. Rejects
 * with 'disk-full' or 'output-unwritable' if they cannot be written here, and with 'protocol-error' if the worker
 * delivers something other than it announced.
 */
export async function bringHome(wanted: WantedResults): Promise<FetchOutcome> {
  let link: Promise<StagingLink | undefined> | undefined;
  try {
    return await bring({ ...wanted, link: () => (link ??= wanted.connect?.() ?? Promise.resolve(undefined)) });
  } finally {
    (await link)?.end();
  }
}

async function bring(resultTransfer: ResultTransfer): Promise<FetchOutcome> {
  const { request } = resultTransfer;
  const files: FetchedFile[] = [];
  let listed: Listed = { files: [], missing: [], odd: [] };
  try {
    await mkdir(request.into, { recursive: true, mode: 0o700 });
    for (const stream of ['stdout', 'stderr'] as const)
      if (request[stream]) files.push(await bringStream(resultTransfer, stream));
    listed = await listFiles(resultTransfer);
    files.push(...(await bringFiles(resultTransfer, listed.files)));
  } catch (thrown) {
    const error = asError(thrown);
    if (error instanceof GryphusError && FATAL.has(error.code)) throw error;
    if (isFull(error)) throw new GryphusError('disk-full', `${request.into} cannot be written: ${error.message}`);
    if (error instanceof GryphusError && error.code === 'site-refused')
      return { ok: false, refusal: refusal('never', 'site-refused', error.message), missing: [], files };
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
  const { outputs, patterns = [] } = request;
  if (outputs !== 'new' && outputs.length + patterns.length === 0) return { files: [], missing: [], odd: [] };
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
  const { outputs, patterns } = request;
  const known = attempt.files;
  if (outputs === 'new' && patterns === undefined && known?.every(({ bytes }) => bytes <= SMALL))
    return { files: known };
  return needed(resultTransfer).ask({
    what: 'files',
    key: attempt.key,
    outputs,
    ...(patterns && { patterns }),
    // A large file's is told behind its bytes, so that it is read once.
    digests: resultTransfer.connect ? 'small' : true,
  });
}

/** The SHA-256 (hex) of a large file whose bytes did not come, or not all, by a connection of their own. */
async function digestThere(resultTransfer: ResultTransfer, file: Listed['files'][number]): Promise<string | undefined> {
  const { key } = resultTransfer.attempt;
  const { files } = await needed(resultTransfer).ask({ what: 'files', key, outputs: [file.offered], digests: true });
  const found = files?.find(({ name }) => name === file.offered);
  return found?.bytes === file.bytes ? found.sha256 : 'another';
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

/** Small files many at a time, then each large one by itself. */
async function bringFiles(
  resultTransfer: ResultTransfer,
  listed: readonly Listed['files'][number][],
): Promise<FetchedFile[]> {
  const all: FetchedFile[] = [];
  const saver = new SmallSaver();
  const left = listed.filter(({ bytes }) => bytes <= SMALL);
  const worker = async (): Promise<void> => {
    for (let file = left.pop(); file !== undefined; file = left.pop()) {
      try {
        all.push(await bringSmall(resultTransfer, saver, file));
      } catch (thrown) {
        left.length = 0;
        throw thrown;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  for (const file of listed) if (file.bytes > SMALL) all.push(await bringLarge(resultTransfer, file));
  return all;
}

async function bringSmall(
  resultTransfer: ResultTransfer,
  saver: SmallSaver,
  file: Listed['files'][number],
): Promise<FetchedFile> {
  const { attempt, request } = resultTransfer;
  const path = within(request.into, file.name);
  const bytes = file.bytes === 0 ? Buffer.alloc(0) : await read(resultTransfer, `work/${file.offered}`, 0, file.bytes);
  if (bytes.length !== file.bytes || (file.sha256 !== undefined && sha256(bytes) !== file.sha256))
    throw lie(attempt, `sent a different '${file.name}' than it announced`);
  await saver.save(request.into, path, bytes);
  if (file.executable) await chmod(path, 0o700);
  return fetched(file, path);
}

async function bringLarge(resultTransfer: ResultTransfer, file: Listed['files'][number]): Promise<FetchedFile> {
  const { into } = resultTransfer.request;
  const path = within(into, file.name);
  await makeParents(into, path);
  const part = partOf(path);
  const source = `work/${file.offered}`;
  const from = await sizeOf(part);
  const came = await pull(resultTransfer, { source, path: part, from, bytes: file.bytes });
  const isLate = resultTransfer.connect !== undefined && file.bytes >= WORTH_A_LINK;
  const said = file.sha256 ?? came.there ?? (isLate ? await digestThere(resultTransfer, file) : undefined);
  if (said !== undefined && (came.here ?? (await sha256Of(part))) !== said) {
    await rm(part, { force: true });
    throw lie(resultTransfer.attempt, `sent a different '${file.name}' than it announced`);
  }
  await chmod(part, file.executable ? 0o700 : 0o600);
  await rename(part, path);
  return fetched(file, path);
}

function fetched({ name, bytes, executable, mode }: OutputFile, path: string): FetchedFile {
  return { name, kind: 'output', path, bytes, executable, ...(mode === undefined ? {} : { mode }) };
}

async function read(resultTransfer: ResultTransfer, path: string, offset: number, bytes: number): Promise<Buffer> {
  if (!resultTransfer.wanted()) throw new GryphusError('interrupted', 'it is no longer needed');
  const ask = { what: 'read', key: resultTransfer.attempt.key, path, offset, bytes } as const;
  return (await needed(resultTransfer).ask(ask)).bytes;
}

interface Pulled {
  readonly source: string;
  readonly path: string;
  /** The offset where an earlier attempt to fetch it stopped. */
  readonly from: number;
  /** The size that its worker announced. */
  readonly bytes: number;
}

/** The SHA-256 (hex) of what came, if it came whole: as it was written here, and as its worker read it. */
interface Digests {
  readonly here: string | undefined;
  readonly there: string | undefined;
}

async function pull(resultTransfer: ResultTransfer, { source, path, from, bytes: all }: Pulled): Promise<Digests> {
  const { attempt } = resultTransfer;
  const begin = from > all ? 0 : from;
  let there: string | undefined;
  const file = await open(path, begin > 0 ? 'r+' : 'w', 0o600);
  const arriving = new Arriving(file, begin);
  try {
    let unchecked = CHECK_BYTES;
    for await (const bytes of coming(resultTransfer, source, begin, all, (digest) => (there = digest))) {
      unchecked += bytes.length;
      if (unchecked > CHECK_BYTES) {
        await keepFloor(dirname(path), Math.min(CHECK_BYTES, all - arriving.end));
        unchecked = 0;
      }
      if (arriving.end + bytes.length > all) throw lie(attempt, `sent more of ${source} than it announced`);
      await arriving.add(bytes);
    }
    await arriving.flush();
    if (arriving.end < all) throw lie(attempt, `sent less of ${source} than it announced`);
    await file.truncate(arriving.end);
  } finally {
    await arriving.settled();
    await file.close();
  }
  return { here: arriving.digest(), there };
}

/** The bytes of a result: of a large one by a connection of their own, and if that is cut, the rest by its worker's other. */
async function* coming(
  resultTransfer: ResultTransfer,
  source: string,
  begin: number,
  all: number,
  onDigest: (digest: string | undefined) => void,
): AsyncGenerator<Buffer> {
  let at = begin;
  const link = all - begin >= WORTH_A_LINK ? await resultTransfer.link() : undefined;
  if (link) {
    const by = link.ask({ what: 'result', path: source, from: begin, to: all });
    try {
      for (;;) {
        const next = await by.next();
        if (next.done === true) return onDigest(begin === 0 ? next.value : undefined);
        at += next.value.length;
        yield next.value;
        if (!resultTransfer.wanted()) break;
      }
    } catch {
      // The rest comes by the other.
    } finally {
      await by.return(undefined);
    }
  }
  yield* pieces((offset, most) => read(resultTransfer, source, offset, most), at, all);
}

function lie({ host }: Attempt, what: string): GryphusError {
  return new GryphusError('protocol-error', `Its worker${host === undefined ? '' : ` ${host}`} ${what}.`);
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
