// Programs that this Debian does not have, from another release of it: unpacked into a separate directory with the
// libraries
// that they need. Nothing is installed, nothing is mounted, and root is not needed.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
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

/** Throws its output if it fails. */
function run(program, args, cwd) {
  const stdio = ['ignore', 'pipe', 'pipe'];
  const { status, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8', stdio });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} failed: ${stderr.trim()}`);
}
