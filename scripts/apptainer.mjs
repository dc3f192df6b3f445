// apptainer for the tests. Debian has included it since the release after bookworm: the package is taken from there,
// with the
// libraries that it needs, into a separate directory.
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { placeOf, startsWith, unpackPackages } from './other-debian.mjs';

const RELEASE = 'sid';
const PACKAGES = ['apptainer', 'libc6', 'libseccomp2', 'libsqlite3-0'];
const LIBRARIES = 'usr/lib/x86_64-linux-gnu';
const STARTER = `${LIBRARIES}/apptainer/bin/starter`;

export function apptainerPlace() {
  return join(placeOf('apptainer'), 'usr');
}

/** The directory of its program; `undefined`, with a message, if it is not available. */
export function needApptainer() {
  const place = apptainerPlace();
  if (existsSync(place)) return join(place, 'bin');
  if (process.arch !== 'x64') return told('there is a package for x86_64 alone');
  const parent = join(place, '../..');
  mkdirSync(parent, { recursive: true });
  const dir = mkdtempSync(join(parent, 'new-'));
  chmodSync(dir, 0o755);
  try {
    console.log(`Getting apptainer from Debian ${RELEASE} …`);
    unpackPackages(dir, RELEASE, PACKAGES);
    layOut(dir);
    mkdirSync(join(place, '..'), { recursive: true });
    if (!existsSync(place)) renameSync(join(dir, 'usr'), place);
    return join(place, 'bin');
  } catch (thrown) {
    return told(thrown instanceof Error ? thrown.message : String(thrown));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function told(why) {
  console.log(`gryphus: no apptainer for the tests: ${why}`);
  return undefined;
}

/** It locates its files relative to its programs, which are made to use the libraries beside them. */
function layOut(dir) {
  const usr = join(dir, 'usr');
  const final = apptainerPlace();
  mkdirSync(join(usr, 'bin'), { recursive: true });
  const unpacked = join(dir, 'unpacked');
  cpSync(join(unpacked, 'usr/lib'), join(usr, 'lib'), { recursive: true, verbatimSymlinks: true });
  cpSync(join(unpacked, 'usr/bin/apptainer'), join(usr, 'bin/apptainer'));
  cpSync(join(unpacked, 'etc'), join(usr, 'etc'), { recursive: true, verbatimSymlinks: true });
  mkdirSync(join(usr, 'var/lib/apptainer/mnt/session'), { recursive: true });
  // The starter counts its directories from another depth than the program.
  for (const name of ['etc', 'var']) symlinkSync(`../${name}`, join(usr, 'lib', name));
  const lib = join(final, '..', LIBRARIES);
  for (const name of ['usr/bin/apptainer', STARTER])
    startsWith(join(dir, name), join(lib, 'ld-linux-x86-64.so.2'), [lib]);
}
