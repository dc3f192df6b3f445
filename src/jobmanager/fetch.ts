import { chmod, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { asError, GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { FetchedFile, FetchOutcome, FetchRequest, OddOutput } from '../site/contract.ts';
import { askedFor } from '../staging/asked-for.ts';
import { keepFloor } from '../staging/disk-floor.ts';
import { within } from '../staging/place.ts';
import type { TransferOptions } from '../transport/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { shellQuote } from '../util/shell-quote.ts';
import type { SiteAnswer } from './answer.ts';
import { octalWord, percentDecode } from '../site/escape.ts';
import { homeOf } from './hello.ts';
import type { BringOptions } from './result-transfer.ts';
import { batches, type JobManagerContext, words, answerFields } from './site-context.ts';
import { sha256Of } from '../staging/sha256.ts';
import { SmallSaver } from '../staging/save-small.ts';
import { patternWord } from './watching.ts';
import { SmallFiles } from './small-files.ts';

const BATCH = 128;
/** Files up to 128 KiB are included in the answer itself (find counts blocks of 512 bytes). */
const SMALL_BLOCKS = 256;

/** How often the free space of this disk is checked while a large file arrives, in milliseconds. */
const LOOK_MS = 200;

/** HTCondor's names for a job's streams in its own directory. */
const STREAMS = { stdout: '_condor_stdout', stderr: '_condor_stderr' } as const;

/**
 * Brings results home: small files together in one stream, large ones one by one, resumed and verified. Large ones may
 * still be on their way when this resolves (result-transfer.ts); a later call for them does not ask the site again.
 */
export async function fetch(
  site: JobManagerContext,
  requests: readonly FetchRequest[],
): Promise<Map<AttemptKey, FetchOutcome>> {
  const { resultTransfer } = site;
  const outcomes = new Map<AttemptKey, FetchOutcome>();
  crashPoint('jm.before-fetch');
  const fresh = requests.filter(({ key }) => !resultTransfer.has(key));
  for (const batch of batches(fresh, BATCH)) await fetchBatch(site, batch, outcomes);
  const coming = requests.map(({ key }) => key).filter((key) => resultTransfer.has(key));
  await resultTransfer.wait(coming);
  const come = resultTransfer.take(coming, requests.length === 1);
  const message = `its results are on their way from ${site.name}`;
  for (const key of coming) {
    const arriving: FetchOutcome = { ok: false, refusal: { kind: 'later', code: 'arriving', message }, missing: [] };
    outcomes.set(key, come.get(key) ?? arriving);
  }
  crashPoint('jm.after-fetch');
  return outcomes;
}

/** Only read, write and execute: a site must not set the set-user-ID bit of a file at home. */
const PERMISSIONS = 0o777;
/** The most names listed in one sentence. */
const MOST_TOLD = 10;

const ODD: readonly OddOutput['is'][] = ['pipe', 'socket', 'device', 'loop'];

interface Progress {
  readonly request: FetchRequest;
  /** The name under which to keep an offered file; undefined if it was not requested. */
  readonly asked: (offered: string) => string | undefined;
  readonly files: FetchedFile[];
  readonly missing: string[];
  readonly odd: OddOutput[];
  trouble: string | undefined;
  gone: boolean;
}

async function fetchBatch(
  site: JobManagerContext,
  batch: readonly FetchRequest[],
  outcomes: Map<AttemptKey, FetchOutcome>,
) {
  const progress = new Map<string, Progress>();
  for (const request of batch)
    progress.set(request.key, {
      request,
      asked: askedFor(request),
      files: [],
      missing: [],
      odd: [],
      trouble: undefined,
      gone: false,
    });
  const small = new Map<string, { readonly at: Place; readonly file: FetchedFile }>();
  const saver = new SmallSaver();
  const sink = new SmallFiles(async (name, bytes) => {
    const at = placeOf(progress, name);
    if (at) small.set(name, { at, file: await save(saver, at.to.request.into, at.file, bytes) });
  });
  const answer = await site.session.exchange('fetch', [words(batch.flatMap(wishes))], [SMALL_BLOCKS], 600_000, sink);
  sink.check();
  for (const [key = ''] of answerFields(answer, 'gone')) {
    const at = progress.get(key);
    if (at) at.gone = true;
  }
  for (const [key = '', name = ''] of answerFields(answer, 'missing')) {
    const at = progress.get(key);
    if (at && isOf(at.request, unescape(name))) at.missing.push(unescape(name));
  }
  for (const [key = '', is = '', word = ''] of answerFields(answer, 'odd')) {
    const at = progress.get(key);
    const name = at?.asked(percentDecode(word));
    if (at && name !== undefined && at.odd.length < MOST_TOLD)
      at.odd.push({ name, is: ODD.find((one) => one === is) ?? 'device' });
  }
  const modeOf = modes(answer);
  const unread = new Set(sink.unread);
  for (const [name, { at, file }] of small) {
    if (unread.has(name)) {
      at.to.trouble = `${file.name} could not be read at ${site.name}`;
      continue;
    }
    const mode = modeOf(name);
    if (mode.executable) await chmod(file.path, 0o700).catch(unwritable(file.path));
    at.to.files.push({ ...file, ...mode });
  }
  const large = new Map<Progress, Large[]>();
  // A named file may match a pattern, too.
  for (const name of new Set(answerFields(answer, 'big').flat())) {
    const at = placeOf(progress, name);
    if (at === undefined) continue;
    const file = { ...at.file, ...modeOf(name), plain: percentDecode(name) };
    large.set(at.to, [...(large.get(at.to) ?? []), file]);
  }
  for (const at of progress.values()) {
    const files = large.get(at);
    if (files === undefined) outcomes.set(at.request.key, outcome(site, at));
    else
      site.resultTransfer.begin(at.request.key, async (options) => {
        for (const file of files) at.files.push(await saveLarge(site, at.request.into, file, options));
        return outcome(site, at);
      });
  }
}

/** Whether this is a named output, or a requested stream. */
function isOf({ outputs, stdout, stderr }: FetchRequest, name: string): boolean {
  return (
    (name === 'stdout' && stdout) || (name === 'stderr' && stderr) || (outputs !== 'new' && outputs.includes(name))
  );
}

function wishes({ key, outputs, patterns = [], stdout, stderr }: FetchRequest): string[] {
  const named = outputs === 'new' ? [`n:${key}`] : outputs.map((name) => `f:${key}/${octalWord(name)}`);
  const matching = patterns.length > 0 ? [patternWord('p', key, patterns)] : [];
  return [...named, ...matching, ...(stdout ? [`o:${key}`] : []), ...(stderr ? [`e:${key}`] : [])];
}

function outcome(site: JobManagerContext, { request, files, missing, odd, trouble, gone }: Progress): FetchOutcome {
  if (gone) {
    const message = `${site.name} has no files of ${request.key}.`;
    return { ok: false, refusal: { kind: 'gone', code: 'unknown-key', message }, missing: [], files };
  }
  if (trouble !== undefined) {
    return { ok: false, refusal: { kind: 'later', code: 'site-busy', message: `${trouble}.` }, missing: [], files };
  }
  if (missing.length + odd.length === 0) return { ok: true, files };
  const message = `The job did not create ${[...missing, ...odd.map(({ name }) => name)].map((name) => `'${name}'`).join(', ')}.`;
  return { ok: false, refusal: { kind: 'never', code: 'output-missing', message }, missing, odd, files };
}

type FileMode = Pick<FetchedFile, 'executable' | 'mode'>;

/** Modes by the names in the answer. The streams' modes are ours. */
function modes(answer: SiteAnswer): (name: string) => FileMode {
  const executables = new Set(answerFields(answer, 'executable').flat());
  const chosen = new Map<string, number>();
  for (const [bit = '', name = ''] of answerFields(answer, 'bit')) {
    chosen.set(name, (chosen.get(name) ?? 0) | (Number.parseInt(bit, 8) & PERMISSIONS));
  }
  return (name) => {
    const mode = /^[^/]+\/work\//.test(name) ? chosen.get(name) : undefined;
    return { executable: executables.has(name), ...(mode === undefined ? {} : { mode }) };
  };
}

interface Place {
  readonly to: Progress;
  readonly file: { readonly name: string; readonly kind: FetchedFile['kind'] };
}

/**
 * Where to put `KEY/stdout`, `KEY/stderr` or `KEY/work/NAME`, the site's names below jobs/. A file that was not
 * requested has no place, but is reported for its job.
 */
function placeOf(progress: ReadonlyMap<string, Progress>, path: string): Place | undefined {
  const [key = '', top, ...below] = path.split('/').map(percentDecode);
  const to = progress.get(key);
  if (to === undefined) return undefined;
  if ((top === 'stdout' || top === 'stderr') && below.length === 0 && to.request[top])
    return { to, file: { name: top, kind: top } };
  const offered = below.join('/');
  const name = top === 'work' ? to.asked(offered) : undefined;
  if (name !== undefined) return { to, file: { name, kind: 'output' } };
  if (to.odd.length < MOST_TOLD) to.odd.push({ name: top === 'work' ? offered : path, is: 'unasked' });
  return undefined;
}

function target(into: string, file: Place['file']): string {
  return file.kind === 'output' ? within(into, file.name) : join(into, STREAMS[file.kind]);
}

async function save(saver: SmallSaver, into: string, file: Place['file'], bytes: Buffer): Promise<FetchedFile> {
  const path = target(into, file);
  await saver.save(into, path, bytes).catch(unwritable(path));
  return { ...file, path, bytes: bytes.length, executable: false };
}

interface Large extends FileMode {
  readonly name: string;
  readonly kind: FetchedFile['kind'];
  /** The path at the site, relative to jobs/. */
  readonly plain: string;
}

/** Resumes an interrupted transfer; a file that is already here and complete is not fetched again. */
async function saveLarge(
  site: JobManagerContext,
  into: string,
  { plain, ...file }: Large,
  { signal, onProgress }: BringOptions,
): Promise<FetchedFile> {
  const { name } = file;
  const path = target(into, file);
  await new SmallSaver().makeParents(into, path).catch(unwritable(path));
  const home = homeOf(await site.session.hello());
  const source = `${home}/jobs/${plain}`;
  let wanted: string | undefined;
  let asked: Promise<string | undefined> | undefined;
  let came: string | undefined;
  for (let turn = 1; ; turn++) {
    signal.throwIfAborted();
    const bytes = await stat(path).then(
      ({ size }) => size,
      () => undefined,
    );
    if (bytes !== undefined) {
      wanted ??= await (asked ?? digestThere(site, source, plain, bytes, signal));
      // If the site has no tool for checksums, a file that has just arrived cannot be verified.
      if (wanted === undefined ? turn > 1 : (came ?? (await sha256Of(path).catch(() => undefined))) === wanted)
        return { ...file, path, bytes };
    }
    if (turn > 2) throw new GryphusError('protocol-error', `${name} did not arrive complete from ${site.name}.`);
    came = undefined;
    await bring(site, source, path, {
      signal,
      onProgress: (done, total) => {
        // The site reads the file while it travels.
        asked ??= digestThere(site, source, plain, total, signal);
        asked.catch(() => undefined);
        onProgress(name, done, total);
      },
      onDigest: (sha256) => {
        came = sha256;
      },
    });
  }
}

/** Gives up if this disk has too little space for all of it, or is nearly full meanwhile. */
async function bring(
  { transport }: JobManagerContext,
  source: string,
  path: string,
  { signal, onProgress, onDigest }: Required<TransferOptions>,
): Promise<void> {
  const full = new AbortController();
  let error: unknown;
  let looking = false;
  let announced: { readonly done: number; readonly total: number } | undefined;
  const look = async (): Promise<void> => {
    if (!announced || looking) return;
    looking = true;
    await keepFloor(dirname(path), announced.total - announced.done).catch((thrown: unknown) => {
      error = thrown;
      full.abort();
    });
    looking = false;
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  try {
    await transport.get(source, path, {
      signal: AbortSignal.any([signal, full.signal]),
      onDigest,
      onProgress: (done, total) => {
        const first = announced === undefined;
        announced = { done, total };
        if (first) void look();
        onProgress(done, total);
      },
    });
  } catch (thrown) {
    throw error ?? thrown;
  } finally {
    clearInterval(timer);
  }
}

/** Up to this size, other requests wait while the site reads the file; a larger one is read on the side. */
const READ_INLINE = 16 * 1024 * 1024;

async function digestThere(site: JobManagerContext, source: string, plain: string, bytes: number, signal: AbortSignal) {
  if (bytes > READ_INLINE) {
    const file = shellQuote(source);
    const tools = ["'openssl dgst -sha256 -r'", 'sha256sum', "'shasum -a 256'", "'busybox sha256sum'"].join(' ');
    const command = `for tool in ${tools}; do sum=$($tool <${file} 2>/dev/null) && echo "$sum" && exit; done; exit 1`;
    const said = await site.transport.run(command, { timeoutMs: 120_000 + bytes / 1000, signal });
    const digest = /^[0-9a-f]{64}/.exec(said.stdout.toString())?.[0];
    if (said.code === 0 && digest !== undefined) return digest;
  }
  const answer = await site.session.exchange('digest', [octalWord(plain)], [], 3_600_000);
  return answerFields(answer, 'digest')[0]?.[0];
}

function unwritable(path: string) {
  return (thrown: unknown): never => {
    if (thrown instanceof GryphusError) throw thrown;
    const error = asError(thrown) as NodeJS.ErrnoException;
    const full = error.code === 'ENOSPC' || error.code === 'EDQUOT';
    throw new GryphusError(full ? 'disk-full' : 'output-unwritable', `${path} cannot be written: ${error.message}`, {
      cause: error,
    });
  };
}

/** Undoes octalWord in what the site repeats. */
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
