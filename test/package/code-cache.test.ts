import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const LOADER = join(import.meta.dirname, '../../scripts/bundle-loader.cjs');
const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
/** Compiles another text, of the same length, into a cache that V8 accepts for the bundle. */
const FORGE = `const [text, cache] = process.argv.slice(1);
const script = new (require('node:vm').Script)(require('node:module').wrap(text), { filename: 'x' });
script.runInThisContext()({}, require);
const data = script.createCachedData();
const sum = Buffer.alloc(4);
sum.writeUInt32LE(require('node:zlib').crc32(data));
require('node:fs').writeFileSync(cache, Buffer.concat([data, sum]));`;

/** Texts with words of the same length are of the same length, which is all that V8 compares. */
const program = (word: string, hash = 'a'.repeat(32)) =>
  `exports.main = () => {};${' '.repeat(2000)}require('node:fs').writeSync(1, '${word}');\n//${hash}`;

describe("the user's code cache of the command line", () => {
  let dir: string;
  let home: string;
  let codes: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gcc-'));
    chmodSync(dir, 0o755);
    home = join(dir, 'a höme');
    codes = join(home, '.cache/gryphus/code');
    mkdirSync(home, { mode: 0o700 });
    copyFileSync(LOADER, join(dir, 'load.cjs'));
    writeFileSync(join(dir, 'bundle.js'), program('bundle'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  function start(env: Record<string, string> = { HOME: home }, cwd = dir): string {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(dir, 'load.cjs')], {
      env,
      cwd,
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    return stdout;
  }
  const cache = () => join(codes, readdirSync(codes)[0] ?? '');
  const inode = () => statSync(cache()).ino;
  function forge(): void {
    const { status, stderr } = spawnSync(process.execPath, ['-e', FORGE, program('forged'), cache()]);
    expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: '' });
  }

  it('is written by the first command, closed to others, and is what the next one runs', () => {
    expect(start()).toBe('bundle');
    expect(readdirSync(codes)).toHaveLength(1);
    expect(statSync(cache()).mode & 0o777).toBe(0o600);
    expect(statSync(codes).mode & 0o777).toBe(0o700);
    const first = inode();
    expect(start()).toBe('bundle');
    expect(inode()).toBe(first);
    // It is code: of our own file, nothing else is asked.
    forge();
    expect(start()).toBe('forged');
  });

  it.each<[string, () => void]>([
    ['that others may write', () => chmodSync(cache(), 0o622)],
    ['in a directory that others may write', () => chmodSync(codes, 0o777)],
    [
      'that is a link',
      () => {
        const name = cache();
        renameSync(name, join(dir, 'elsewhere'));
        symlinkSync(join(dir, 'elsewhere'), name);
      },
    ],
    ...(isRoot
      ? ([
          ['of another user', () => chownSync(cache(), NOBODY, NOBODY)],
          ["in another user's directory", () => chownSync(codes, NOBODY, NOBODY)],
        ] satisfies [string, () => void][])
      : []),
  ])('%s is not run', (_, spoil) => {
    start();
    forge();
    spoil();
    expect(start()).toBe('bundle');
  });

  it('that is cut off or damaged is made again', () => {
    start();
    const whole = readFileSync(cache());
    for (const damage of [
      () => truncateSync(cache(), whole.length >> 1),
      () => truncateSync(cache(), 0),
      () => writeFileSync(cache(), Buffer.alloc(whole.length)),
      () => writeFileSync(cache(), Buffer.from(whole).fill(0, whole.length >> 1)),
    ]) {
      damage();
      expect(start()).toBe('bundle');
      expect(readFileSync(cache()).length).toBeGreaterThan(whole.length >> 1);
      const repaired = inode();
      expect(start()).toBe('bundle');
      expect(inode()).toBe(repaired);
    }
  });

  it('of a bundle that is as long, with the same time, is not that of its successor', () => {
    start();
    const { atime, mtime } = statSync(join(dir, 'bundle.js'));
    writeFileSync(join(dir, 'bundle.js'), program('follow', 'b'.repeat(32)));
    utimesSync(join(dir, 'bundle.js'), atime, mtime);
    expect(start()).toBe('follow');
  });

  it.each([{ HOME: '' }, { HOME: '', XDG_CACHE_HOME: 'relative' }])(
    'is never below the working directory: %o',
    (env) => {
      const cwd = join(dir, 'cwd');
      mkdirSync(cwd);
      expect(start(env, cwd)).toBe('bundle');
      expect(readdirSync(cwd)).toEqual([]);
    },
  );

  it.skipIf(!isRoot)('is not left in the home of another user', () => {
    chownSync(home, NOBODY, NOBODY);
    expect(start()).toBe('bundle');
    expect(existsSync(join(home, '.cache'))).toBe(false);
  });

  it.skipIf(!isRoot)('is not needed by a user that the system does not know, without a HOME', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(dir, 'load.cjs')], {
      env: {},
      uid: 12_345,
      gid: 12_345,
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'bundle', stderr: '' });
  });
});

it('the build leaves a code cache for each of its programs', () => {
  const dist = join(import.meta.dirname, '../../dist');
  const programs = ['cli', 'compat-cli', 'daemons'].flatMap((directory) =>
    readdirSync(join(dist, directory))
      .filter((name) => name.endsWith('.js') && !['bundle.js', 'registry.js'].includes(name))
      .map((name) => join(dist, directory, name.replace(/\.js$/, ''))),
  );
  expect(programs.length).toBeGreaterThan(5);
  const without = programs.filter((program) => !existsSync(`${program}-${process.version}-${process.arch}.cache`));
  expect(without).toEqual([]);
});
