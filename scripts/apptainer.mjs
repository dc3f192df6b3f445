// apptainer for the tests. Debian has it since its release after bookworm: the package is taken from there, with the
// libraries that it needs, into a directory of its own.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const RELEASE = 'sid';
const PACKAGES = ['apptainer', 'libc6', 'libseccomp2', 'libsqlite3-0'];
const LIBRARIES = 'usr/lib/x86_64-linux-gnu';
const STARTER = `${LIBRARIES}/apptainer/bin/starter`;

/** Where it is, or would be: everybody may run what root has put there. */
export function apptainerPlace() {
  const place = (cache) => join(cache, 'gryphus-tests/apptainer/usr');
  if (process.getuid?.() === 0 || existsSync(place('/var/cache'))) return place('/var/cache');
  return place(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'));
}

/** The directory of its program; `undefined`, and a line that says why: it could not be had. */
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
    fetchInto(dir);
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

/** Its packages, unpacked, by an apt that knows of nothing else and changes nothing. */
function fetchInto(dir) {
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(join(dir, 'sources.list'), `deb [signed-by=${keys}] http://deb.debian.org/debian ${RELEASE} main\n`);
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'debs'])
    mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, 'status'), '');
  const options = {
    'Dir::Etc::SourceList': join(dir, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State': join(dir, 'state'),
    'Dir::State::status': join(dir, 'status'),
    'Dir::Cache': join(dir, 'cache'),
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
  };
  const words = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  run('apt-get', [...words, '-qq', 'update'], join(dir, 'debs'));
  run('apt-get', [...words, '-qq', 'download', ...PACKAGES], join(dir, 'debs'));
  for (const name of readdirSync(join(dir, 'debs')))
    run('dpkg', ['-x', join(dir, 'debs', name), join(dir, 'unpacked')]);
}

/** It finds its files by where its program is, which are made to use the libraries beside them. */
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
  for (const name of ['usr/bin/apptainer', STARTER]) {
    const interpreter = join(lib, 'ld-linux-x86-64.so.2');
    run('patchelf', ['--set-interpreter', interpreter, '--force-rpath', '--set-rpath', lib, join(dir, name)]);
  }
}

function run(program, args, cwd) {
  const { status, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} failed: ${stderr.trim()}`);
}
