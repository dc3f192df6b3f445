// What a fresh clone needs before anything of it runs. Node's own modules only: nothing is installed yet.
import { spawnSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { needApptainer } from './apptainer.mjs';
import { needHtcondor } from './htcondor.mjs';
import { anyMatches, chosenTests, isNeeded, withImports } from './needed-packages.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

export function fail(message) {
  console.error(`gryphus: ${message}`);
  process.exit(1);
}

/** `npm ci` where node_modules is missing, or is not what package-lock.json says. */
export function needModules() {
  if (modulesAreFresh()) return;
  console.log('Installing the packages of package-lock.json …');
  const npm = process.env.npm_execpath?.endsWith('.js') ? [process.execPath, process.env.npm_execpath] : ['npm'];
  const [program, ...before] = npm;
  const cache = cacheIsWritable() ? [] : ['--cache', passingDir('gryphus-npm-')];
  run(program, [...before, 'ci', '--no-audit', '--no-fund', '--loglevel=error', ...cache], 'npm ci failed');
}

/** A directory that goes with this process. */
function passingDir(prefix) {
  const dir = mkdtempSync(join(tmpdir(), prefix));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** npm fails where it cannot write its cache, which is another's or read-only on some machines. npm names it to its scripts. */
function cacheIsWritable() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm');
  return [cache, join(cache, '_cacache'), join(cache, '_cacache/tmp')].every((dir) => {
    try {
      accessSync(dir, constants.W_OK);
      return true;
    } catch (error) {
      return error.code === 'ENOENT' && (dir !== cache || canMake(cache));
    }
  });
}

function canMake(dir) {
  try {
    mkdirSync(dir, { recursive: true });
    return true;
  } catch {
    return false;
  }
}

function modulesAreFresh() {
  try {
    const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
    const there = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8')).packages;
    return Object.entries(wanted).every(
      ([path, { version, optional }]) => path === '' || there[path]?.version === version || (optional && !there[path]),
    );
  } catch {
    return false;
  }
}

/** Compiles src/ where dist/ is missing or older. */
export function needBuild() {
  if (buildIsFresh()) return;
  console.log('Building …');
  run(process.execPath, [join(root, 'scripts/build.mjs')], 'the build failed');
}

function buildIsFresh() {
  const stamp = join(root, 'dist/.built');
  if (!existsSync(stamp)) return false;
  const built = statSync(stamp).mtimeMs;
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join(root, 'src', name),
  );
  const others = [
    'package.json',
    'tsconfig.json',
    'scripts/build.mjs',
    'scripts/bundle-loader.cjs',
    'scripts/need-node.cjs',
    'scripts/notices.mjs',
  ].map((name) => join(root, name));
  return [...sources, ...others].every((file) => statSync(file).mtimeMs <= built);
}

/** What the tests chosen by these words use: the globs of those that cannot run without something that is not available. */
export function needWhatTestsUse(words) {
  const files = withImports(root, chosenTests(root, words));
  const excluded = needDebianPackages(files);
  if (anyMatches(['test/sites/apptainer.ts'], files) && needApptainer() === undefined)
    excluded.push('test/pool/containers-apptainer*.test.ts');
  if (anyMatches(['test/sites/condor*.ts'], files) && !needHtcondor()) {
    if (process.env.CI) fail('HTCondor is not there for the tests.');
    excluded.push('test/**/htcondor*.test.ts');
  }
  return excluded;
}

/**
 * The Debian packages that these test files use: installed if root, otherwise named. Returns the tests (globs) that cannot
 * run without the missing ones; with CI set, none may be missing.
 */
function needDebianPackages(files) {
  const { packages } = JSON.parse(readFileSync(join(root, 'scripts/debian-packages.json'), 'utf8'));
  const slow = process.env.GRYPHUS_SLOW === '1';
  let missing = packages.filter((one) => (slow || !one.slow) && isNeeded(one, files) && !isInstalled(one.name));
  if (missing.length === 0) return [];
  const names = missing.map(({ name }) => name);
  if (process.getuid?.() === 0 && has('apt-get')) {
    console.log(`Installing Debian packages: ${names.join(' ')} …`);
    aptInstall(names);
    missing = missing.filter(({ name }) => !isInstalled(name));
  }
  if (missing.length === 0) return [];
  const line = `not installed: ${missing.map(({ name }) => name).join(', ')}. Install: sudo apt-get install --no-install-recommends ${missing.map(({ name }) => name).join(' ')}`;
  if (process.env.CI) fail(line);
  console.log(`gryphus: ${line}`);
  for (const { name, tests } of missing)
    if (tests.length > 0) console.log(`gryphus: skipped without ${name}: ${tests.join(' ')}`);
  return missing.flatMap(({ tests }) => tests);
}

function isInstalled(name) {
  const found = spawnSync('dpkg-query', ['-W', '-f', '${db:Status-Abbrev}', name], { encoding: 'utf8' });
  return found.status === 0 && found.stdout.startsWith('ii');
}

function has(program) {
  return spawnSync('sh', ['-c', 'command -v "$1"', 'sh', program]).status === 0;
}

/** Quiet, without questions, and without starting a service. */
function aptInstall(names) {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  try {
    const apt = (...args) =>
      spawnSync('apt-get', ['-o', 'DPkg::Lock::Timeout=600', '-qq', ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
        maxBuffer: 64 * 1024 * 1024,
      });
    const install = () => apt('install', '-y', '--no-install-recommends', ...names);
    let done = install();
    if (done.status !== 0) {
      apt('update');
      done = install();
    }
    if (done.status !== 0) fail(`apt-get install failed:\n${done.stdout}${done.stderr}`);
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}

/** Runs a program to its end; `problem` is said where it fails. */
export function run(program, args, problem) {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error) fail(`${problem}: ${error.message}`);
  if (status !== 0) fail(`${problem} (exit ${status}).`);
}
