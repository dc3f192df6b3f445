import { createHash } from 'node:crypto';
import { createReadStream, readdirSync, realpathSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { OddOutput } from '../site/contract.ts';
import { chosenMode } from '../util/file-mode.ts';
import type { AttemptPlace } from './attempt-place.ts';
import type { OutputFile } from './wire.ts';

/** Files at the top of the sandbox that were not there at the start: HTCondor's default. */
export function newFiles(dir: AttemptPlace, names: readonly string[]): OutputFile[] {
  const before = new Set([...names, 'condor_exec.exe']);
  const found: OutputFile[] = [];
  for (const entry of readdirSync(dir.work, { withFileTypes: true })) {
    if (before.has(entry.name) || !entry.isFile()) continue;
    const file = fileAt(dir, entry.name);
    if (file) found.push(file);
  }
  return found;
}

/** What stands at names: files, nothing, or what has no content. */
export interface Named {
  readonly files: OutputFile[];
  readonly missing: string[];
  readonly odd: OddOutput[];
}

/** Files and directories by name; a directory is given by the files in it. */
export function namedFiles(dir: AttemptPlace, names: readonly string[]): Named {
  const found: Named = { files: [], missing: [], odd: [] };
  for (const name of names) {
    const plain = name.replace(/\/+$/, '');
    const path = inside(dir.work, plain);
    const there = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
    if (path === undefined || !there) found.missing.push(name);
    else if (there.isSocket()) found.odd.push({ name: plain, is: 'socket' });
    else walk(dir, plain, [], found);
  }
  return found;
}

/** A socket that a program left in a directory is passed over, as HTCondor does, and so is a link to nowhere. */
function walk(dir: AttemptPlace, name: string, above: readonly string[], found: Named): void {
  const path = join(dir.work, name);
  const there = statSync(path, { throwIfNoEntry: false });
  if (!there || there.isSocket()) return;
  if (there.isDirectory()) {
    const real = realpathSync(path);
    if (above.includes(real)) found.odd.push({ name, is: 'loop' });
    else for (const entry of readdirSync(path)) walk(dir, join(name, entry), [...above, real], found);
  } else if (there.isFile()) {
    found.files.push({ name, bytes: there.size, executable: (there.mode & 0o100) !== 0, ...chosenMode(there.mode) });
  } else found.odd.push({ name, is: there.isFIFO() ? 'pipe' : 'device' });
}

function fileAt(dir: AttemptPlace, name: string): OutputFile | undefined {
  const found = statSync(join(dir.work, name), { throwIfNoEntry: false });
  if (!found?.isFile()) return undefined;
  return { name, bytes: found.size, executable: (found.mode & 0o100) !== 0, ...chosenMode(found.mode) };
}

export async function withDigests(dir: AttemptPlace, files: readonly OutputFile[]): Promise<OutputFile[]> {
  const all: OutputFile[] = [];
  for (const file of files) {
    const hash = createHash('sha256');
    await pipeline(createReadStream(join(dir.work, file.name), { highWaterMark: 1 << 20 }), hash);
    all.push({ ...file, sha256: hash.digest('hex') });
  }
  return all;
}

/** Bytes of `stdout`, `stderr` or `work/NAME`; fewer than asked: it ends there. Rejects where there is no such file. */
export async function readPiece(dir: AttemptPlace, path: string, offset: number, bytes: number): Promise<Buffer> {
  const name = path.startsWith('work/')
    ? inside(dir.work, path.slice(5))
    : STREAMS.has(path) && dir.stream(path as 'stdout' | 'stderr');
  if (!name) throw new Error(`${path} is not a result.`);
  const file = await open(name, 'r');
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

const STREAMS: ReadonlySet<string> = new Set(['stdout', 'stderr']);

/** The path of a name under a directory; `undefined` where it would lead out of it, by its words or by a link. */
function inside(directory: string, name: string): string | undefined {
  const path = join(directory, name);
  if (path !== directory && !path.startsWith(directory + sep)) return undefined;
  try {
    const real = realpathSync(path);
    const root = realpathSync(directory);
    // A link that the job made to a file of its owner is followed, as a copy of the directory would.
    return real === root || real.startsWith(root + sep) || statSync(real).isFile() ? path : undefined;
  } catch {
    return path;
  }
}
