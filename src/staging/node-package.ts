import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { asError, GryphusError } from '../errors.ts';
import { flushTree } from '../util/flush-tree.ts';

/** Processors for which there is a Node build. */
export type Arch = 'x64' | 'arm64';

/** npm's packages of Node's official binaries, and the registry's hashes of the archives (sha512). */
const VERSION = '20.20.2';
const PACKAGES: Readonly<Record<Arch, string>> = {
  x64: 'PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==',
  arm64: 'LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==',
};

/** A Node binary that is carried to sites. */
export interface NodeBinary {
  /** A file called `node`, executable, in a directory of its own. */
  readonly path: string;
  readonly sha256: string;
  /** The oldest glibc that it runs with, such as `2.28`; '' if it names none. */
  readonly glibc: string;
  readonly arch: Arch;
}

export interface NodeSource {
  /** Our own repository, in the state directory. */
  readonly repository: string;
  /** `npm`: npm's package; `own`: the Node that runs us; `auto`: npm's or, if it cannot be had, our own. */
  readonly from: 'auto' | 'npm' | 'own';
  readonly log: (message: string, facts?: object) => void;
}

const PATIENCE_MS = 300_000;
const run = promisify(execFile);

/** The Node for this processor, fetched only once; a 'missing-program' with advice if there is none. */
export async function nodeFor(arch: Arch, { repository, from, log }: NodeSource): Promise<NodeBinary> {
  const directory = join(repository, from === 'own' ? 'node-own' : `node-${VERSION}-${arch}`);
  const path = join(directory, 'node');
  if (from === 'own') return ownNode(arch, repository);
  if (existsSync(path)) return describe(path, arch);
  try {
    mkdirSync(repository, { recursive: true, mode: 0o700 });
    await fetchPackage(arch, directory);
    return describe(path, arch);
  } catch (thrown) {
    const cause = asError(thrown);
    if (from === 'auto' && arch === process.arch) {
      log('npm cannot provide Node for pilots now: using our own', { why: cause.message });
      return ownNode(arch, repository);
    }
    throw new GryphusError('missing-program', `There is no Node for ${arch} pilots: ${cause.message}.`, {
      cause,
      suggestions: [`Put one there yourself: ${path}`],
    });
  }
}

/** Node's name for a processor that `uname -m` names. */
export function nodeArch(machine: string): Arch {
  if (/^(x86_64|amd64)$/i.test(machine)) return 'x64';
  if (/^(aarch64|arm64)$/i.test(machine)) return 'arm64';
  throw new GryphusError('missing-program', `There is no worker build for the processor ${machine}.`, {
    suggestions: ['Glideins need x86_64 or aarch64 under Linux.'],
  });
}

async function ownNode(arch: Arch, repository: string): Promise<NodeBinary> {
  if (arch !== process.arch || process.platform !== 'linux') {
    throw new GryphusError('missing-program', `Our own Node is for ${process.arch}, not for ${arch}.`);
  }
  const bytes = readFileSync(process.execPath);
  const directory = join(repository, `node-own-${digest(bytes).slice(0, 16)}`);
  const path = join(directory, 'node');
  if (!existsSync(path)) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const fresh = `${path}.${process.pid}`;
    copyFileSync(process.execPath, fresh);
    chmodSync(fresh, 0o700);
    await flushTree(directory);
    renameSync(fresh, path);
  }
  return describe(path, arch, bytes);
}

function describe(path: string, arch: Arch, bytes: Buffer = readFileSync(path)): NodeBinary {
  return { path, arch, sha256: digest(bytes), glibc: glibcOf(bytes) };
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The newest symbol version of the GNU C library that a program refers to (`GLIBC_2.28`). */
export function glibcOf(bytes: Buffer): string {
  let newest: readonly [number, number] = [0, 0];
  for (let at = bytes.indexOf('GLIBC_2.'); at !== -1; at = bytes.indexOf('GLIBC_2.', at + 8)) {
    const minor = Number.parseInt(bytes.toString('latin1', at + 8, at + 12), 10);
    if (Number.isInteger(minor) && minor > newest[1]) newest = [2, minor];
  }
  return newest[0] === 0 ? '' : newest.join('.');
}

async function fetchPackage(arch: Arch, directory: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'gry-node-'));
  try {
    await run('npm', ['pack', `node-linux-${arch}@${VERSION}`, '--silent', '--pack-destination', scratch], {
      cwd: scratch,
      timeout: PATIENCE_MS,
    });
    const archive = readdirSync(scratch).find((name) => name.endsWith('.tgz'));
    if (archive === undefined) throw new Error('npm downloaded nothing');
    const found = createHash('sha512')
      .update(readFileSync(join(scratch, archive)))
      .digest('base64');
    if (found !== PACKAGES[arch])
      throw new Error(`the package node-linux-${arch} from npm does not have the expected content`);
    await run('tar', ['-xzf', archive, 'package/bin/node'], { cwd: scratch, timeout: PATIENCE_MS });
    const fresh = `${directory}.${process.pid}`;
    mkdirSync(fresh, { recursive: true, mode: 0o700 });
    copyFileSync(join(scratch, 'package/bin/node'), join(fresh, 'node'));
    chmodSync(join(fresh, 'node'), 0o700);
    await flushTree(fresh);
    rmSync(directory, { recursive: true, force: true });
    renameSync(fresh, directory);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
