import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { open, readdir, realpath, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGunzip, createGzip } from 'node:zlib';
import * as z from 'zod';
import { asError, GryphusError } from '../errors.ts';
import { type TarEntry, tarStream } from '../staging/tar.ts';
import { reasonOf } from '../util/plain-text.ts';

/** The first line of a backup; a gzipped archive follows, which ends with the tag of its cipher if it has one. */
const HEAD = z.object({
  'gryphus-backup': z.literal(1),
  cipher: z.enum(['none', 'aes-256-gcm']),
  /** Base64. */
  salt: z.string().optional(),
  nonce: z.string().optional(),
});
type Head = z.infer<typeof HEAD>;

const LONGEST_HEAD = 4096;
const TAG_BYTES = 16;
/** 64 MB of memory for each try of a passphrase. */
const SCRYPT = { N: 1 << 16, r: 8, p: 1, maxmem: 1 << 27 };
const LEVEL = 1;

const derive = promisify<string, Buffer, number, typeof SCRYPT, Buffer>(scrypt);

/** What a backup that was killed left beside its file is removed by a later one. */
const LEFTOVER = /^\.[0-9a-f]{12}\.new$/;
const LEFTOVER_MS = 86_400_000;

/**
 * Writes a backup, mode 0600, under its name only once it is whole and on disk. Returns its size in bytes. Rejects with
 * 'output-unwritable' or 'disk-full'.
 */
export async function writeContainer(
  named: string,
  entries: AsyncIterable<TarEntry>,
  passphrase?: string,
): Promise<number> {
  const path = await replaceable(named);
  const head: Head =
    passphrase === undefined
      ? { 'gryphus-backup': 1, cipher: 'none' }
      : {
          'gryphus-backup': 1,
          cipher: 'aes-256-gcm',
          salt: randomBytes(16).toString('base64'),
          nonce: randomBytes(12).toString('base64'),
        };
  const line = Buffer.from(`${JSON.stringify(head)}\n`);
  const cipher =
    passphrase === undefined ? undefined : createCipheriv('aes-256-gcm', ...(await keyOf(head, passphrase)));
  cipher?.setAAD(line);
  const temporary = `${path}.${randomBytes(6).toString('hex')}.new`;
  const file = await open(temporary, 'wx', 0o600).catch((thrown: unknown) => {
    throw unwritable(path, thrown);
  });
  try {
    await file.write(line);
    const body = Readable.from(tarStream(entries), { objectMode: false });
    const into = () => createWriteStream(temporary, { fd: file.fd, autoClose: false, start: line.length });
    if (cipher) await pipeline(body, createGzip({ level: LEVEL }), cipher, into());
    else await pipeline(body, createGzip({ level: LEVEL }), into());
    if (cipher) await file.write(cipher.getAuthTag(), 0, TAG_BYTES, (await file.stat()).size);
    await file.sync();
    const { size } = await file.stat();
    await file.close();
    await rename(temporary, path);
    await removeLeftovers(path);
    const dir = await open(dirname(path));
    try {
      await dir.sync();
    } finally {
      await dir.close();
    }
    return size;
  } catch (thrown) {
    await file.close().catch(() => undefined);
    rmSync(temporary, { force: true });
    throw thrown instanceof GryphusError ? thrown : unwritable(path, thrown);
  }
}

/** A file is replaced, the one that a link names; a pipe, a device or a directory would be lost by that. */
async function replaceable(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return path;
  if (found.isFile()) return realpath(path);
  throw new GryphusError(
    'output-unwritable',
    `The backup ${path} cannot be written: it is there already, and ${found.isDirectory() ? 'a directory' : 'no regular file'}.`,
    { suggestions: ['Name a file: it appears when it is whole. `--encrypt` encrypts it.'] },
  );
}

async function removeLeftovers(path: string): Promise<void> {
  const dir = dirname(path);
  for (const name of await readdir(dir).catch(() => [])) {
    if (!name.startsWith(basename(path)) || !LEFTOVER.test(name.slice(basename(path).length))) continue;
    const found = await stat(join(dir, name)).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > LEFTOVER_MS) rmSync(join(dir, name), { force: true });
  }
}

/**
 * Writes the archive in a backup to the file `into`. `passphrase` is called if it is encrypted. Rejects with 'bad-input' if
 * the file is no backup, is damaged, or the passphrase is another one: `into` is then of no use.
 */
export async function readContainer(path: string, into: string, passphrase: () => Promise<string>): Promise<void> {
  const { head, line, size } = await headOf(path);
  const encrypted = head.cipher !== 'none';
  const end = size - (encrypted ? TAG_BYTES : 0);
  if (end <= line.length) throw damaged(path, 'it is cut off');
  const body = createReadStream(path, { start: line.length, end: end - 1 });
  const out = createWriteStream(into, { mode: 0o600, flags: 'wx' });
  try {
    if (!encrypted) return await pipeline(body, createGunzip(), out);
    const cipher = createDecipheriv('aes-256-gcm', ...(await keyOf(head, await passphrase())));
    cipher.setAAD(line);
    cipher.setAuthTag(await tagOf(path, size));
    await pipeline(body, cipher, createGunzip(), out);
  } catch (thrown) {
    if (thrown instanceof GryphusError) throw thrown;
    const full = unpackedDiskFull(thrown, into);
    if (full) throw full;
    throw damaged(path, encrypted ? 'the passphrase is another one, or it is damaged' : reasonOf(thrown));
  }
}

export function unpackedDiskFull(thrown: unknown, into: string): GryphusError | undefined {
  if (!/ENOSPC|EDQUOT/.test(asError(thrown).message)) return undefined;
  return new GryphusError('disk-full', `The backup cannot be unpacked: no space left on the disk of ${into}.`);
}

async function keyOf({ salt = '', nonce = '' }: Head, passphrase: string): Promise<[Buffer, Buffer]> {
  return [await derive(passphrase, Buffer.from(salt, 'base64'), 32, SCRYPT), Buffer.from(nonce, 'base64')];
}

async function headOf(path: string): Promise<{ readonly head: Head; readonly line: Buffer; readonly size: number }> {
  const unreadable = (cause: unknown) => {
    throw new GryphusError('input-missing', `The backup ${path} cannot be read: ${reasonOf(cause)}.`, { cause });
  };
  // Opening a pipe would wait for its writer.
  if (!(await stat(path).catch(unreadable)).isFile()) throw damaged(path, 'it is no regular file; save it to one');
  const file = await open(path).catch(unreadable);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(LONGEST_HEAD), 0, LONGEST_HEAD, 0);
    const end = buffer.subarray(0, bytesRead).indexOf(10);
    if (end < 0) throw damaged(path, 'it is no backup of Gryphus');
    const line = buffer.subarray(0, end + 1);
    const head = HEAD.safeParse(parsed(line.toString('utf8')));
    if (!head.success) throw damaged(path, 'it is no backup that this Gryphus can read');
    return { head: head.data, line, size: (await file.stat()).size };
  } finally {
    await file.close();
  }
}

async function tagOf(path: string, size: number): Promise<Buffer> {
  const file = await open(path);
  try {
    return (await file.read(Buffer.alloc(TAG_BYTES), 0, TAG_BYTES, size - TAG_BYTES)).buffer;
  } finally {
    await file.close();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function damaged(path: string, why: string): GryphusError {
  return new GryphusError('bad-input', `The backup ${path} cannot be used: ${why}.`, {
    suggestions: ['Nothing was changed here. Use another backup, or `gryphus recover` without one.'],
  });
}

function unwritable(path: string, cause: unknown): GryphusError {
  const full = /ENOSPC|EDQUOT/.test(asError(cause).message);
  return new GryphusError(
    full ? 'disk-full' : 'output-unwritable',
    `The backup ${path} cannot be written: ${full ? 'no space left on its disk' : reasonOf(cause)}.`,
    { cause },
  );
}
