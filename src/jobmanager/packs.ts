import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { GryphusError } from '../errors.ts';
import type { AttemptSpec, Blob, InputFile } from '../site/contract.ts';
import type { Pack, PackedSpec } from '../site/spec-lines.ts';
import { keepFloor } from '../staging/disk-floor.ts';
import { isOnLocalDisk } from '../staging/local-disk.ts';
import { type TarEntry, tarStream } from '../staging/tar.ts';

/** Files up to this size are packed, in bytes. */
const SMALL = 64 * 1024;
/** The least number of files below a directory, and of those listed one by one, that are worth packing. */
const LEAST = { below: 100, listed: 1000 } as const;
/** The most bytes in one pack: a change of one file sends its whole pack again. */
const MOST = 32 << 20;
/** The most bytes of packs on this disk; beyond it, files are sent one by one. */
const MOST_HERE = 1 << 30;
/** How many packs are remembered that are not on this disk. */
const REMEMBERED = 16;
const PIECE = 1 << 20;
/** What a file takes in a pack besides its bytes, about. */
const HEADERS = 1024;
/** Files between two turns of other work of this process. */
const TURN = 100;

type Small = Extract<InputFile, { kind: 'file' }> & { readonly file: { readonly kind: 'blob'; readonly blob: Blob } };

let opened = 1;

interface Known {
  readonly blob: Blob;
  readonly files: readonly Small[];
  here: boolean;
}

/**
 * Archives of many small inputs, made from the same files always with the same bytes: one for a site to fetch, check
 * and unpack instead of thousands. They are on this disk until their site has them.
 */
export class Packs {
  readonly #root: string;
  /** Of this client alone: one that replaces it may already be open. */
  readonly #directory: string;
  /** By what is in them. */
  readonly #known = new Map<string, Known>();
  #begun: Promise<unknown> | undefined;
  #next = 1;

  /** `root` is this process's alone; what earlier processes left in it is deleted. */
  constructor(root: string) {
    this.#root = root;
    this.#directory = join(root, `${process.pid}.${opened++}`);
  }

  /** The spec with its many small inputs in packs. Rejects with 'input-missing' if one changed, or 'disk-full'. */
  async packed(spec: AttemptSpec): Promise<PackedSpec> {
    const groups = groupsOf(spec.inputs);
    if (groups.length === 0 || this.#bytesHere() > MOST_HERE) return spec;
    const packs: Pack[] = [];
    const inside = new Set<InputFile>();
    for (const files of groups) {
      packs.push({ blob: await this.#blobOf(files), tops: [...new Set(files.map(({ name }) => topOf(name)))] });
      for (const file of files) inside.add(file);
    }
    return { ...spec, inputs: spec.inputs.filter((input) => !inside.has(input)), packs };
  }

  /** Makes those of these that are packs and are no longer on this disk. */
  async make(blobs: readonly Blob[]): Promise<void> {
    const wanted = new Set(blobs.map(({ sha256 }) => sha256));
    for (const known of this.#known.values()) {
      if (known.here || !wanted.has(known.blob.sha256)) continue;
      await this.#write(known.files);
      known.here = true;
    }
  }

  /** Deletes the packs of a spec, which its site has. */
  async drop({ packs = [] }: PackedSpec): Promise<void> {
    const shas = new Set(packs.map(({ blob }) => blob.sha256));
    for (const known of this.#known.values()) {
      if (!known.here || !shas.has(known.blob.sha256)) continue;
      known.here = false;
      await rm(dirname(known.blob.path), { recursive: true, force: true });
    }
    const away = [...this.#known].filter(([, { here }]) => !here);
    for (const [key] of away.slice(0, Math.max(0, away.length - REMEMBERED))) this.#known.delete(key);
  }

  async close(): Promise<void> {
    if (this.#begun) await rm(this.#directory, { recursive: true, force: true });
  }

  async #blobOf(files: readonly Small[]): Promise<Blob> {
    const hash = createHash('sha256');
    for (const { name, executable, file } of files)
      hash.update(`${file.blob.sha256}${executable ? 'x' : '-'}${name}\0`);
    const key = hash.digest('hex');
    const known = this.#known.get(key);
    if (known) return known.blob;
    const blob = await this.#write(files);
    this.#known.set(key, { blob, files, here: true });
    return blob;
  }

  async #write(files: readonly Small[]): Promise<Blob> {
    await (this.#begun ??= this.#clear());
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await keepFloor(
      this.#directory,
      files.reduce((sum, { file }) => sum + file.blob.bytes + HEADERS, 0),
    );
    const waiting = join(this.#directory, `new.${this.#next++}`);
    const hash = createHash('sha256');
    let bytes = 0;
    const file = await open(waiting, 'w', 0o600);
    try {
      for await (const piece of pieces(tarStream(entries(files)))) {
        hash.update(piece);
        await file.write(piece);
        bytes += piece.length;
      }
    } finally {
      await file.close();
    }
    const sha256 = hash.digest('hex');
    // Its name is shown to the user while it is on its way.
    const first = files[0];
    const path = join(this.#directory, sha256, first ? nameOf(first) : 'inputs');
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await rename(waiting, path);
    return { sha256, bytes, path };
  }

  async #clear(): Promise<void> {
    const names = await readdir(this.#root).catch(() => []);
    const left = names.filter((name) => !name.startsWith(`${process.pid}.`));
    await Promise.all(left.map((name) => rm(join(this.#root, name), { recursive: true, force: true })));
  }

  #bytesHere(): number {
    return [...this.#known.values()].reduce((sum, { here, blob }) => sum + (here ? blob.bytes : 0), 0);
  }
}

function isSmall(input: InputFile): input is Small {
  return input.kind === 'file' && input.file.kind === 'blob' && input.file.blob.bytes <= SMALL;
}

/** What goes into one pack each. Jobs that share a directory share its packs, whatever else they have. */
function groupsOf(inputs: readonly InputFile[]): Small[][] {
  if (inputs.length < LEAST.below) return [];
  const groups = new Map<string, Small[]>();
  for (const input of inputs) {
    if (!isSmall(input)) continue;
    const key = isBelow(input) ? `below ${topOf(input.name)}` : `listed ${dirname(input.file.blob.path)}`;
    const group = groups.get(key);
    if (group) group.push(input);
    else groups.set(key, [input]);
  }
  const many = [...groups.values()].filter(
    (files) => files.length >= (files.every(isBelow) ? LEAST.below : LEAST.listed),
  );
  return many.flatMap(cut);
}

function cut(files: readonly Small[]): Small[][] {
  const packs: Small[][] = [];
  let bytes = MOST;
  for (const file of files) {
    if (bytes + file.file.blob.bytes > MOST) {
      packs.push([]);
      bytes = 0;
    }
    packs.at(-1)?.push(file);
    bytes += file.file.blob.bytes;
  }
  return packs;
}

function isBelow({ name }: Small): boolean {
  return name.includes('/');
}

function topOf(name: string): string {
  return name.split('/', 1)[0] ?? name;
}

function nameOf(file: Small): string {
  return isBelow(file) ? topOf(file.name) : basename(dirname(file.file.blob.path)) || 'inputs';
}

async function* entries(files: readonly Small[]): AsyncGenerator<TarEntry> {
  for (const [i, { name, executable, file }] of files.entries()) {
    const { path, bytes, sha256 } = file.blob;
    const local = isOnLocalDisk(dirname(path));
    const content = (typeof local === 'boolean' ? local : await local) ? readHere(path) : await readThere(path);
    if (content.length !== bytes || createHash('sha256').update(content).digest('hex') !== sha256) {
      throw new GryphusError('input-missing', `${path} was changed while it was being sent.`);
    }
    yield { name, mode: executable ? 0o700 : 0o600, content };
    if (i % TURN === TURN - 1) await turn();
  }
}

function readHere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (thrown) {
    throw unreadable(path, thrown);
  }
}

function readThere(path: string): Promise<Buffer> {
  return readFile(path).catch((thrown: unknown) => {
    throw unreadable(path, thrown);
  });
}

function unreadable(path: string, cause: unknown): GryphusError {
  return new GryphusError('input-missing', `The input ${path} cannot be read.`, { cause });
}

/** The same bytes in pieces of a megabyte or more. */
async function* pieces(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < PIECE) continue;
    yield Buffer.concat(held);
    held = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(held);
}
