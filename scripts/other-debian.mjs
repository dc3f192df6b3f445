// Programs that this Debian does not have, from another release of it: unpacked into a separate directory with the
// libraries that they need. Nothing is installed, nothing is mounted, and root is not needed.
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
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Where `name` is, or would be; every user may run what root has put there. */
export function placeOf(name) {
  const place = (cache) => join(cache, 'gryphus-tests', name);
  if (process.getuid?.() === 0 || existsSync(place('/var/cache'))) return place('/var/cache');
  return place(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'));
}

/**
 * The packages of a release, unpacked into `dir/unpacked` by an apt that checks their signatures, knows no other
 * sources and changes nothing.
 */
export function unpackPackages(dir, release, packages) {
  for (const name of ['state/lists/partial', 'cache/archives/partial', 'debs'])
    mkdirSync(join(dir, name), { recursive: true });
  writeFileSync(join(dir, 'sources.list'), `deb [signed-by=${KEYS}] ${mirror()} ${release} main\n`);
  writeFileSync(join(dir, 'status'), '');
  const options = {
    'Dir::Etc::SourceList': join(dir, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::Etc::Preferences': '/dev/null',
    'Dir::Etc::PreferencesParts': '/dev/null',
    'Dir::State': join(dir, 'state'),
    'Dir::State::status': join(dir, 'status'),
    'Dir::Cache': join(dir, 'cache'),
    'APT::Default-Release': '',
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
  };
  const words = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  run('apt-get', [...words, '-qq', 'update'], join(dir, 'debs'));
  run('apt-get', [...words, '-qq', 'download', ...packages], join(dir, 'debs'));
  for (const name of readdirSync(join(dir, 'debs')))
    run('dpkg', ['-x', join(dir, 'debs', name), join(dir, 'unpacked')]);
}

/** The mirror that this machine's own packages come from. */
export function mirror() {
  const targets = ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Label: Debian'];
  const { stdout } = spawnSync('apt-get', targets, { encoding: 'utf8' });
  return stdout?.split('\n')[0] || 'http://deb.debian.org/debian';
}

/** A program starts with this loader and these libraries, regardless of the machine's own. */
export function startsWith(program, loader, libraries) {
  const path = ['--force-rpath', '--set-rpath', libraries.join(':')];
  run('patchelf', ['--set-interpreter', loader, ...path, program]);
}

/**
 * Makes `place`, unless it is there, from these packages of a release of Debian: `make` puts what is wanted of `unpacked` into `ours`.
 * Whether it is there then; prints why not.
 */
export function makePlace(place, title, release, packages, make) {
  if (existsSync(place)) return true;
  const parent = join(place, '..');
  let dir;
  try {
    mkdirSync(parent, { recursive: true });
    dir = mkdtempSync(join(parent, 'new-'));
    chmodSync(dir, 0o755);
    console.log(`Getting ${title} from Debian ${release} …`);
    unpackPackages(dir, release, packages);
    const ours = join(dir, 'ours');
    mkdirSync(ours);
    make(join(dir, 'unpacked'), ours);
    // Another process may have been faster.
    if (!existsSync(place)) renameSync(ours, place);
    return true;
  } catch (thrown) {
    console.log(`gryphus: no ${title} for the tests: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    return false;
  } finally {
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * Whether the programs of these packages are in `usr` of placeOf(name), with the libraries that they need, and gets them
 * from a later release; prints why not.
 */
export function needPackages(name, title, packages, release = 'trixie') {
  const place = placeOf(name);
  return makePlace(place, title, release, packages, (unpacked, ours) => {
    renameSync(join(unpacked, 'usr'), join(ours, 'usr'));
    keepTogether(join(ours, 'usr'), join(place, 'usr'));
  });
}

/** Each program below `usr` starts with the loader and the libraries that will be below `final`. */
function keepTogether(usr, final) {
  const names = readdirSync(usr, { recursive: true, encoding: 'utf8' });
  const loader = names.find((name) => /^lib\/[^/]+\/ld-linux[^/]*\.so\.\d+$/.test(name));
  if (loader === undefined) throw new Error('there is no loader among its libraries');
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

/** Throws its output if it fails. */
function run(program, args, cwd) {
  const stdio = ['ignore', 'pipe', 'pipe'];
  const { status, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8', stdio });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} failed: ${stderr.trim()}`);
}
