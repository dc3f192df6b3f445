import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { GryphusError } from '../../errors.ts';
import type { OddOutput } from '../../site/contract.ts';
import { RESERVED } from '../../staging/asked-for.ts';
import { sha256OfOpen } from '../../staging/sha256.ts';
import { nameBytes, nameText } from '../../util/byte-name.ts';
import { chosenMode } from '../../util/file-mode.ts';
import type { AttemptPlace } from './attempt-place.ts';
import { WatchedFiles } from './watched-files.ts';
import { WORTH_A_LINK } from '../wire/staging-link.ts';
import type { OutputFile, WireAsk } from '../wire/wire.ts';

/** Where an attempt's results are. */
type ResultsPlace = Pick<AttemptPlace, 'work' | 'uid' | 'stream'>;

/** The files at the top of the sandbox that were not there at the start, which is HTCondor's default. */
export function newFiles(dir: ResultsPlace, names: readonly string[]): OutputFile[] {
  const { work } = dir;
  const before = new Set([...names, ...RESERVED]);
  return entriesOf(work).flatMap((name) => {
    const path = placeOf(work, name);
    const found = before.has(name) ? undefined : lstatSync(path, { throwIfNoEntry: false });
    return found?.isFile() && !isForeign(dir, path, found) ? [asOutput(name, found)] : [];
  });
}

/** Further files that match patterns. Nothing that a link leads to. */
export function matchingFiles(
  dir: ResultsPlace,
  patterns: readonly string[] = [],
  others: readonly OutputFile[] = [],
): OutputFile[] {
  const known = new Set(others.map(({ name }) => name));
  return patterns.length === 0
    ? []
    : new WatchedFiles(dir.work, patterns).all().flatMap((name) => {
        const path = placeOf(dir.work, name);
        const found = known.has(name) ? undefined : lstatSync(path, { throwIfNoEntry: false });
        return found?.isFile() && !isForeign(dir, path, found) ? [asOutput(name, found)] : [];
      });
}

/** What was found under given names: files, nothing, or something without content. */
export interface NamedResult {
  readonly files: OutputFile[];
  readonly missing: string[];
  readonly odd: OddOutput[];
}

/** Files and directories by name; a directory stands for the files in it. */
export function namedFiles(dir: ResultsPlace, names: readonly string[]): NamedResult {
  const { work } = dir;
  const found: NamedResult = { files: [], missing: [], odd: [] };
  for (const name of names) {
    const plain = name.replace(/\/+$/, '');
    const path = inside(work, plain);
    const there = path === undefined ? undefined : statOf(path);
    if (path === undefined || !there || (there.isFile() && isForeign(dir, path, there))) found.missing.push(name);
    else if (there.isSocket()) found.odd.push({ name: plain, is: 'socket' });
    else walk(dir, plain, { above: [], behind: false, left: { entries: MOST_BEHIND } }, found);
  }
  return found;
}

/** `undefined` where links lead to one another only, or more of them in a row than the kernel follows. */
function behindLinks<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ELOOP') return undefined;
    throw thrown;
  }
}

function statOf(path: Path): Stats | undefined {
  return behindLinks(() => statSync(path, { throwIfNoEntry: false }));
}

/** The most entries of directories that are reached through links: 40 directories with two links each have 2 ** 40 paths. */
const MOST_BEHIND = 20_000;

interface Way {
  /** The directories on it, by device and inode. */
  readonly above: readonly string[];
  /** Whether a link is on it. */
  readonly behind: boolean;
  /** How many entries may still be found behind links. */
  readonly left: { entries: number };
}

/** Ignores sockets left in a directory, as HTCondor does, and dangling symbolic links. */
function walk(dir: ResultsPlace, name: string, { above, behind, left }: Way, found: NamedResult): void {
  if (left.entries < 0) return;
  const path = placeOf(dir.work, name);
  const there = statOf(path);
  if (!there || there.isSocket() || (there.isFile() && isForeign(dir, path, there))) return;
  if (there.isDirectory()) {
    const place = `${there.dev}:${there.ino}`;
    if (above.includes(place)) return void found.odd.push({ name, is: 'loop' });
    // What another account's links lead to is not looked at, as its files are not.
    const isOthers = dir.uid !== undefined && there.uid !== dir.uid;
    if (isOthers && !isBelow(realpathSync(path, 'latin1'), realpathSync(dir.work, 'latin1'))) return;
    const way = { above: [...above, place], behind: behind || lstatSync(path).isSymbolicLink(), left };
    const entries = behindLinks(() => entriesOf(path)) ?? [];
    if (way.behind) left.entries -= entries.length;
    if (left.entries < 0) found.odd.push({ name, is: 'loop' });
    else for (const entry of entries) walk(dir, join(name, entry), way, found);
  } else if (there.isFile()) found.files.push(asOutput(name, there));
  else found.odd.push({ name, is: there.isFIFO() ? 'pipe' : 'device' });
}

/**
 * Whether a file is not the job's to show: a worker of root can read what the job's account cannot, so what the job's
 * links lead to has to belong to that account.
 */
function isForeign({ work, uid }: ResultsPlace, path: Path, { uid: owner, nlink }: Stats): boolean {
  if (uid === undefined || owner === uid) return false;
  const real = realpathSync(path, 'latin1');
  return nlink > 1 || !real.startsWith(realpathSync(work, 'latin1') + sep);
}

/** Opens a result. Rejects if it is not the job's: it may have been replaced since it was listed. */
async function openResult(dir: ResultsPlace, path: Path): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const ours = dir.uid === undefined || !isForeign(dir, `/proc/self/fd/${file.fd}`, await file.stat());
  if (ours) return file;
  await file.close();
  throw notTheJobs(path);
}

function notTheJobs(path: Path): Error {
  return new Error(`${String(path)} leads to a file that is not the job's.`);
}

function asOutput(name: string, { size, mode }: Stats): OutputFile {
  return { name, bytes: size, executable: (mode & 0o100) !== 0, ...chosenMode(mode) };
}

type Path = string | Buffer;

/** The names in a directory; those that are not valid UTF-8 are encoded by `nameText`. */
function entriesOf(directory: Path): string[] {
  const names = readdirSync(directory);
  return names.some((name) => name.includes('\uFFFD')) ? readdirSync(directory, 'buffer').map(nameText) : names;
}

/** The path of a name, which may be encoded. */
function placeOf(work: string, name: string): Path {
  const path = join(work, name);
  const bytes = nameBytes(name);
  return bytes === undefined || lstatSync(path, { throwIfNoEntry: false })
    ? path
    : Buffer.concat([Buffer.from(`${work}/`), bytes]);
}

/** What a list of files may take, in bytes: less than a frame may have. */
const LONGEST_LIST = 48 << 20;
/** What else is said of a file. */
const ABOUT_FILE = 160;

/** Throws 'site-refused' for more files than can be named in one message, which would end the worker's connection. */
export function refuseTooMany(files: readonly OutputFile[]): void {
  const bytes = files.reduce((sum, { name }) => sum + Buffer.byteLength(name) + ABOUT_FILE, 0);
  if (bytes <= LONGEST_LIST) return;
  const message = `It left ${files.length} files, more than can be brought home: let it make one archive of them.`;
  throw new GryphusError('site-refused', message);
}

/** What is asked of an attempt's results; `names`: what was in its sandbox before it. Rejects for what cannot be listed. */
export async function listedFiles(
  dir: ResultsPlace,
  names: readonly string[],
  { outputs, patterns, digests }: Extract<WireAsk, { readonly what: 'files' }>,
): Promise<Partial<NamedResult>> {
  const { files, ...others } = outputs === 'new' ? { files: newFiles(dir, names) } : namedFiles(dir, outputs);
  files.push(...matchingFiles(dir, patterns, files));
  refuseTooMany(files);
  const most = digests === 'small' ? WORTH_A_LINK - 1 : undefined;
  return { files: digests === false ? files : await withDigests(dir, files, most), ...others };
}

const IN_VAIN: ReadonlySet<unknown> = new Set(['site-refused', 'ENAMETOOLONG', 'EACCES']);

/** Whether what went wrong with the results would go wrong again. */
export function isInVain(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && IN_VAIN.has(thrown.code);
}

/** Files up to this size, in bytes, are read at once, which costs a tenth of a stream. */
const SMALL = 64 << 10;
/** Files between two turns of other work of this process. */
const TURN = 100;

/** Those of more bytes than `most` get none. */
export async function withDigests(
  dir: ResultsPlace,
  files: readonly OutputFile[],
  most = Number.POSITIVE_INFINITY,
): Promise<OutputFile[]> {
  const all: OutputFile[] = [];
  for (const [i, file] of files.entries()) {
    if (file.bytes > most) {
      all.push(file);
      continue;
    }
    const path = placeOf(dir.work, file.name);
    const sha256 = file.bytes <= SMALL ? digestNow(dir, path, file.bytes) : await digestOf(dir, path);
    all.push({ ...file, sha256 });
    if (i % TURN === TURN - 1) await turn();
  }
  return all;
}

async function digestOf(dir: ResultsPlace, path: Path): Promise<string> {
  const opened = await openResult(dir, path);
  try {
    return await sha256OfOpen(opened);
  } finally {
    await opened.close();
  }
}

/** Of what a file now has up to `bytes`; one that has grown will not be what was announced. */
function digestNow(dir: ResultsPlace, path: Path, bytes: number): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (dir.uid !== undefined && isForeign(dir, `/proc/self/fd/${fd}`, fstatSync(fd))) throw notTheJobs(path);
    const content = Buffer.allocUnsafe(bytes);
    let got = 0;
    for (let more = 1; more > 0 && got < bytes; got += more) more = readSync(fd, content, got, bytes - got, got);
    return createHash('sha256').update(content.subarray(0, got)).digest('hex');
  } finally {
    closeSync(fd);
  }
}

/**
 * Bytes of `stdout`, `stderr` or `work/NAME`; fewer than requested at the end of the file. Rejects if there is no such
 * file.
 */
export async function readPiece(dir: ResultsPlace, path: string, offset: number, bytes: number): Promise<Buffer> {
  const file = await openForReading(dir, path);
  try {
    const buffer = Buffer.allocUnsafe(Math.min(bytes, 4 << 20));
    let got = 0;
    while (got < buffer.length) {
      const { bytesRead } = await file.read(buffer, got, buffer.length - got, offset + got);
      if (bytesRead === 0) break;
      got += bytesRead;
    }
    return buffer.subarray(0, got);
  } finally {
    await file.close();
  }
}

/** Opens `stdout`, `stderr` or `work/NAME`. Rejects if there is no such file. */
export function openForReading(dir: ResultsPlace, path: string): Promise<FileHandle> {
  const name = path.startsWith('work/')
    ? inside(dir.work, path.slice(5))
    : STREAMS.has(path) && dir.stream(path as 'stdout' | 'stderr');
  if (!name) return Promise.reject(new Error(`${path} is not a result.`));
  return STREAMS.has(path) ? open(name, 'r') : openResult(dir, name);
}

function isBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory + sep);
}

const STREAMS: ReadonlySet<string> = new Set(['stdout', 'stderr']);

/** The path of a name below a directory; `undefined` if it would lead outside, by `..` or through a link. */
function inside(directory: string, name: string): Path | undefined {
  const joined = join(directory, name);
  if (joined !== directory && !joined.startsWith(directory + sep)) return undefined;
  const path = placeOf(directory, relative(directory, joined));
  try {
    const real = realpathSync(path, 'latin1');
    const root = realpathSync(directory, 'latin1');
    // A link that the job made to a file elsewhere is followed, as copying the directory would.
    return isBelow(real, root) || statSync(path).isFile() ? path : undefined;
  } catch {
    return path;
  }
}
