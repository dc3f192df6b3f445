import { closeSync, existsSync, linkSync, mkdirSync, openSync, readSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GryphusError } from '../errors.ts';

/** The header of a job's image; its format is native/src/image.h's. */
export interface ImageHeader {
  /** Sixteen hexadecimal digits, by the image's content. */
  readonly id: string;
  /** What the job had written to its streams, bytes. */
  readonly stdout: number;
  readonly stderr: number;
  /** Ids of the earlier images that have a part of its content: each is beside it, as `baseOf` names it. */
  readonly bases: readonly string[];
  /** What wrote it (`checkpoint_engine`). */
  readonly engine: string;
}

const MAGIC = 'GRYCKPT\n';
const VERSION = 2;
/** The version of other engines' images: their name is where ours has its bases. */
const OF_ENGINE = 0x101;
const NAME_BYTES = 128;
const HEADER_BYTES = 192;
const BASES_AT = 64;
const MOST_BASES = 8;

/** Reads an image's header. Throws 'output-missing' if it has none. */
export function readImageHeader(path: string): ImageHeader {
  const bytes = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, 'r');
  try {
    if (readSync(file, bytes, 0, HEADER_BYTES, 0) !== HEADER_BYTES) throw notWhole(path);
  } finally {
    closeSync(file);
  }
  const count = bytes.readUInt32LE(56);
  const version = bytes.readUInt32LE(8);
  const isKnown = version === VERSION || (version === OF_ENGINE && count === 0);
  if (bytes.toString('latin1', 0, 8) !== MAGIC || !isKnown || count > MOST_BASES) throw notWhole(path);
  const [name = ''] = bytes.toString('latin1', BASES_AT, BASES_AT + NAME_BYTES).split('\0');
  const id = (at: number) => bytes.readBigUInt64LE(at).toString(16).padStart(16, '0');
  return {
    id: id(16),
    stdout: Number(bytes.readBigUInt64LE(40)),
    stderr: Number(bytes.readBigUInt64LE(48)),
    bases: Array.from({ length: count }, (_, n) => id(BASES_AT + 16 * n)),
    engine: version === VERSION ? 'gryphus' : name,
  };
}

function notWhole(path: string): GryphusError {
  return new GryphusError('output-missing', `${path} is not a checkpoint's image.`);
}

/** Where an image's base is. */
export function baseOf(image: string, id: string): string {
  return `${image}.${id}`;
}

/** Where in a directory of files that are equal to an image and its bases the one with an id is; `undefined`: nowhere. */
function partOf(image: string, id: string): string | undefined {
  if (existsSync(baseOf(image, id))) return baseOf(image, id);
  return existsSync(image) && readImageHeader(image).id === id ? image : undefined;
}

/** The ids of an image and its bases. */
export function idsOf(image: string): ReadonlySet<string> {
  const { id, bases } = readImageHeader(image);
  return new Set([id, ...bases]);
}

/**
 * Puts an image at another place of the same file system, without the bases that whoever gets it has. Idempotent: the
 * image itself comes last.
 */
export function linkImage(from: string, to: string, known: ReadonlySet<string>): void {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  for (const id of readImageHeader(from).bases) if (!known.has(id)) linkAs(baseOf(from, id), baseOf(to, id));
  linkAs(from, to);
}

function linkAs(from: string, to: string): void {
  const fresh = `${to}.link`;
  rmSync(fresh, { force: true });
  linkSync(from, fresh);
  renameSync(fresh, to);
}

/** Gives an image that came without some of its bases those of the one before. Throws 'output-missing' if one is lost. */
export function completeImage(image: string, before: string | undefined): void {
  for (const id of readImageHeader(image).bases) {
    if (existsSync(baseOf(image, id))) continue;
    const found = before === undefined ? undefined : partOf(before, id);
    if (found === undefined) throw new GryphusError('output-missing', `${image} lacks its base ${id}.`);
    linkAs(found, baseOf(image, id));
  }
}

/** The name of the image in a checkpoint's directory. */
export function imageIn(directory: string): string {
  return join(directory, 'image');
}
