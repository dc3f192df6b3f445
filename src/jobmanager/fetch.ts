import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { asError, GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, OddOutput } from '../site/contract.ts';
import { makeParents, partOf, within } from '../staging/place.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { Answer } from './answer.ts';
import { octalWord, percentDecode } from './escape.ts';
import { homeOf } from './hello.ts';
import { batches, type SiteContext, words, wordsOf } from './site-context.ts';

const BATCH = 128;
/** Files up to 128 KiB come in the answer itself (find counts blocks of 512 bytes). */
const SMALL_BLOCKS = 256;

/** HTCondor's names for the streams of a job in its own directory. */
const STREAMS = { stdout: '_condor_stdout', stderr: '_condor_stderr' } as const;

/** Brings results home: many small files in one stream, large ones each by itself, resumed and verified. */
export async function fetch(
  site: SiteContext,
  requests: readonly FetchRequest[],
): Promise<Map<AttemptKey, FetchOutcome>> {
  const outcomes = new Map<AttemptKey, FetchOutcome>();
  crashPoint('jm.before-fetch');
  for (const batch of batches(requests, BATCH)) await fetchBatch(site, batch, outcomes);
  crashPoint('jm.after-fetch');
  return outcomes;
}

const ODD: readonly OddOutput['is'][] = ['pipe', 'socket', 'device', 'loop'];

interface Progress {
  readonly request: FetchRequest;
  readonly files: FetchedFile[];
  readonly missing: string[];
  readonly odd: OddOutput[];
  trouble: string | undefined;
  gone: boolean;
}

async function fetchBatch(site: SiteContext, batch: readonly FetchRequest[], outcomes: Map<AttemptKey, FetchOutcome>) {
  const progress = new Map<string, Progress>();
  for (const request of batch)
    progress.set(request.key, { request, files: [], missing: [], odd: [], trouble: undefined, gone: false });
  const answer = await site.session.exchange('fetch', [words(batch.flatMap(wishes))], [SMALL_BLOCKS], 600_000);
  for (const [key = ''] of wordsOf(answer, 'gone')) {
    const at = progress.get(key);
    if (at) at.gone = true;
  }
  for (const [key = '', name = ''] of wordsOf(answer, 'missing')) progress.get(key)?.missing.push(unescape(name));
  for (const [key = '', is = '', name = ''] of wordsOf(answer, 'odd'))
    progress.get(key)?.odd.push({ name: percentDecode(name), is: ODD.find((one) => one === is) ?? 'device' });
  const executables = new Set(wordsOf(answer, 'executable').flat());
  for (const { name, bytes, whole } of smallFiles(answer)) {
    const at = placeOf(progress, name);
    if (at === undefined) continue;
    if (!whole) at.to.trouble = `${at.file.name} could not be read at ${site.name}`;
    else at.to.files.push(await save(at.to.request.into, at.file, bytes, executables.has(name)));
  }
  for (const name of wordsOf(answer, 'big').flat()) {
    const at = placeOf(progress, name);
    if (at !== undefined)
      at.to.files.push(await saveLarge(site, at.to.request.into, at.file, name, executables.has(name)));
  }
  for (const at of progress.values()) outcomes.set(at.request.key, outcome(site, at));
}

function wishes({ key, outputs, stdout, stderr }: FetchRequest): string[] {
  const named = outputs === 'new' ? [`n:${key}`] : outputs.map((name) => `f:${key}/${octalWord(name)}`);
  return [...named, ...(stdout ? [`o:${key}`] : []), ...(stderr ? [`e:${key}`] : [])];
}

function outcome(site: SiteContext, { request, files, missing, odd, trouble, gone }: Progress): FetchOutcome {
  if (gone) {
    const message = `${site.name} has nothing of ${request.key}.`;
    return { ok: false, refusal: { kind: 'gone', code: 'unknown-key', message }, missing: [], files };
  }
  if (trouble !== undefined) {
    return { ok: false, refusal: { kind: 'later', code: 'site-busy', message: `${trouble}.` }, missing: [], files };
  }
  if (missing.length + odd.length === 0) return { ok: true, files };
  const message = `The job did not make ${[...missing, ...odd.map(({ name }) => name)].map((name) => `'${name}'`).join(', ')}.`;
  return { ok: false, refusal: { kind: 'never', code: 'output-missing', message }, missing, odd, files };
}

/** Each `small` line names the files of the `stream` line after it; `streamed` says whether they could all be read. */
function* smallFiles(answer: Answer): Generator<{ name: string; bytes: Buffer; whole: boolean }> {
  let names: string[] = [];
  let streams: { name: string; bytes: Buffer }[] = [];
  for (const { kind, rest, bytes } of answer.lines) {
    if (kind === 'small') names.push(rest);
    else if (kind === 'stream') streams = bytes.map((content, i) => ({ name: names[i] ?? '', bytes: content }));
    else if (kind === 'streamed') {
      for (const file of streams) yield { ...file, whole: rest === '0' };
      names = [];
      streams = [];
    }
  }
}

interface Place {
  readonly to: Progress;
  readonly file: { readonly name: string; readonly kind: FetchedFile['kind'] };
}

/** `KEY/stdout`, `KEY/stderr` or `KEY/work/NAME`, as the site names it under jobs/. */
function placeOf(progress: ReadonlyMap<string, Progress>, path: string): Place | undefined {
  const found = /^([^/]+)\/(?:(stdout|stderr)|work\/(.+))$/s.exec(percentDecode(path));
  const to = progress.get(found?.[1] ?? '');
  if (!found || to === undefined) return undefined;
  const stream = found[2];
  if (stream === 'stdout' || stream === 'stderr') return { to, file: { name: stream, kind: stream } };
  return { to, file: { name: found[3] ?? '', kind: 'output' } };
}

async function target(into: string, file: Place['file']): Promise<string> {
  const path = file.kind === 'output' ? within(into, file.name) : join(into, STREAMS[file.kind]);
  await mkdir(into, { recursive: true, mode: 0o700 }).catch(unwritable(into));
  await makeParents(into, path);
  return path;
}

async function save(into: string, file: Place['file'], bytes: Buffer, executable: boolean): Promise<FetchedFile> {
  const path = await target(into, file);
  const waiting = partOf(path);
  await writeFile(waiting, bytes, { mode: executable ? 0o700 : 0o600 }).catch(unwritable(path));
  await rename(waiting, path).catch(unwritable(path));
  return { ...file, path, bytes: bytes.length, executable };
}

async function saveLarge(
  site: SiteContext,
  into: string,
  file: Place['file'],
  name: string,
  executable: boolean,
): Promise<FetchedFile> {
  const path = await target(into, file);
  const plain = percentDecode(name);
  const answer = await site.session.exchange('digest', [octalWord(plain)], [], 3_600_000);
  const digest = wordsOf(answer, 'digest')[0]?.[0];
  const home = homeOf(await site.session.hello());
  for (let turn = 1; ; turn++) {
    if (digest !== undefined && (await digestOf(path)) === digest) {
      return { ...file, path, bytes: (await stat(path)).size, executable };
    }
    if (turn > 2) throw new GryphusError('protocol-error', `${file.name} did not come home whole from ${site.name}.`);
    await site.transport.get(`${home}/jobs/${plain}`, path);
    if (digest === undefined) return { ...file, path, bytes: (await stat(path)).size, executable };
  }
}

async function digestOf(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
    return hash.digest('hex');
  } catch {
    return undefined;
  }
}

function unwritable(path: string) {
  return (thrown: unknown): never => {
    const error = asError(thrown) as NodeJS.ErrnoException;
    const full = error.code === 'ENOSPC' || error.code === 'EDQUOT';
    throw new GryphusError(full ? 'disk-full' : 'output-unwritable', `${path} cannot be written: ${error.message}`, {
      cause: error,
    });
  };
}

/** Undoes octalWord for what the site repeats to us. */
function unescape(word: string): string {
  if (!word.includes('\\')) return word;
  const bytes: number[] = [];
  for (let i = 0; i < word.length; i++) {
    const octal = word[i] === '\\' ? word.slice(i + 2, i + 5) : undefined;
    bytes.push(octal === undefined ? word.charCodeAt(i) : Number.parseInt(octal, 8));
    if (octal !== undefined) i += 4;
  }
  return Buffer.from(bytes).toString('utf8');
}
