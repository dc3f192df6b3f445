import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { GryphusError } from '../errors.ts';
import { readAt, type TarMember, tarMembers } from '../staging/tar.ts';
import { reasonOf } from '../util/plain-text.ts';
import { damaged, readContainer, unpackedDiskFull } from './container.ts';
import { MANIFEST, MANIFEST_NAME, type Manifest, QUEUE_NAME } from './content.ts';

const PIECE = 1 << 20;
const LONGEST_MANIFEST = 1 << 20;

/** The parts of a backup on this disk. */
export interface Unpacked {
  readonly manifest: Manifest;
  /** Absolute. */
  readonly configDir: string;
  readonly stateDir: string;
  readonly rdb: string;
}

/** Unpacks a backup into a new directory. Rejects with 'bad-input' if it is none, or damaged. */
export async function unpack(file: string, dir: string, passphrase: () => Promise<string>): Promise<Unpacked> {
  const archive = join(dir, 'archive.tar');
  await readContainer(file, archive, passphrase);
  const fd = openSync(archive, 'r');
  try {
    const members = tarMembers(fd);
    const first = members?.[0];
    if (!members || first?.name !== MANIFEST_NAME || first.bytes > LONGEST_MANIFEST)
      throw damaged(file, 'its archive is damaged');
    const manifest = MANIFEST.safeParse(JSON.parse(readAt(fd, first.offset, first.bytes).toString('utf8')));
    if (!manifest.success) throw damaged(file, 'its first file is damaged');
    if (!members.some(({ name }) => name === QUEUE_NAME)) throw damaged(file, 'it has no queue');
    for (const member of members.slice(1)) {
      if (!isInside(member.name)) throw damaged(file, `it has a file of the name ${JSON.stringify(member.name)}`);
      copy(fd, member, join(dir, member.name));
    }
    const [configDir, stateDir] = [join(dir, 'config'), join(dir, 'state')];
    for (const one of [configDir, stateDir]) mkdirSync(one, { recursive: true, mode: 0o700 });
    return { manifest: manifest.data, configDir, stateDir, rdb: join(dir, QUEUE_NAME) };
  } catch (thrown) {
    // A file that is also a directory, two of one name, a name that is none.
    throw thrown instanceof GryphusError ? thrown : (unpackedDiskFull(thrown, dir) ?? damaged(file, reasonOf(thrown)));
  } finally {
    closeSync(fd);
    rmSync(archive, { force: true });
  }
}

/** Whether the name is one that a backup gives, and leads nowhere else. */
function isInside(name: string): boolean {
  const [top, ...rest] = name.split('/');
  if (rest.length === 0) return name === QUEUE_NAME;
  return (top === 'config' || top === 'state') && rest.every((part) => part !== '' && part !== '.' && part !== '..');
}

function copy(from: number, { offset, bytes, mode }: TarMember, path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const to = openSync(path, 'wx', (mode & 0o700) | 0o600);
  try {
    for (let done = 0; done < bytes; ) {
      const piece = readAt(from, offset + done, Math.min(PIECE, bytes - done));
      if (piece.length === 0) throw new Error(`${path} is cut off.`);
      for (let written = 0; written < piece.length; ) written += writeSync(to, piece, written);
      done += piece.length;
    }
  } finally {
    closeSync(to);
  }
}
