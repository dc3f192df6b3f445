// HTCondor for the tests. Debian has included it since the release after bookworm: the package is taken from there,
// with the libraries that
// it needs.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { placeOf, startsWith, unpackPackages } from './other-debian.mjs';

const RELEASE = 'trixie';
const LIBRARIES = 'libc6 libgcc-s1 libgomp1 libpcre2-8-0 libssl3t64 libstdc++6 libuuid1 libzstd1 zlib1g'.split(' ');

/** Its `usr`, whether or not it exists yet. */
export function htcondorPlace() {
  return join(placeOf('htcondor'), 'usr');
}

/** Whether it is available; prints why not. */
export function needHtcondor() {
  const place = placeOf('htcondor');
  if (existsSync(place)) return true;
  const parent = join(place, '..');
  let dir;
  try {
    mkdirSync(parent, { recursive: true });
    dir = mkdtempSync(join(parent, 'new-'));
    chmodSync(dir, 0o755);
    console.log(`Getting HTCondor from Debian ${RELEASE} …`);
    unpackPackages(dir, RELEASE, ['condor', ...LIBRARIES]);
    const ours = join(dir, 'ours');
    mkdirSync(ours);
    renameSync(join(dir, 'unpacked/usr'), join(ours, 'usr'));
    keepTogether(join(ours, 'usr'));
    if (!existsSync(place)) renameSync(ours, place);
    return true;
  } catch (thrown) {
    console.log(`gryphus: no HTCondor for the tests: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    return false;
  } finally {
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
  }
}

function keepTogether(usr) {
  const names = readdirSync(usr, { recursive: true, encoding: 'utf8' });
  const loader = names.find((name) => /^lib\/[^/]+\/ld-linux[^/]*\.so\.\d+$/.test(name));
  if (loader === undefined) throw new Error('there is no loader among its libraries');
  const final = htcondorPlace();
  const libraries = [join(final, loader, '..'), join(final, 'lib')];
  for (const name of names.filter((one) => /^(bin|sbin|libexec)\//.test(one))) {
    const program = join(usr, name);
    if (!isElf(program)) continue;
    const { status, error } = spawnSync('patchelf', ['--print-interpreter', program]);
    if (error) throw error;
    if (status === 0) startsWith(program, join(final, loader), libraries);
  }
}

function isElf(path) {
  const bytes = Buffer.alloc(4);
  let file;
  try {
    file = openSync(path, 'r');
    readSync(file, bytes);
  } catch {
    return false;
  } finally {
    if (file !== undefined) closeSync(file);
  }
  return bytes.toString('latin1') === '\x7fELF';
}
