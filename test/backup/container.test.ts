import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeContainer } from '../../src/backup/container.ts';
import { contentOf, MANIFEST_NAME, QUEUE_NAME } from '../../src/backup/content.ts';
import { unpack } from '../../src/backup/unpack.ts';
import { loadPaths } from '../../src/config/paths.ts';
import type { TarEntry } from '../../src/staging/tar.ts';

const MANIFEST = { at: 1, version: '1', agent: 'a', host: 'h', stateDir: '/s' };
const entry = (name: string, content: string): TarEntry => ({ name, mode: 0o600, content: Buffer.from(content) });
const whole = (more: readonly TarEntry[]) => [
  entry(MANIFEST_NAME, JSON.stringify(MANIFEST)),
  entry(QUEUE_NAME, 'REDIS'),
  ...more,
];
async function* each(entries: readonly TarEntry[]): AsyncGenerator<TarEntry> {
  yield* entries;
}

describe('a backup', () => {
  let dir: string;
  let number = 0;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'gry-backup-'));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  const file = () => join(dir, 'backup');
  const fresh = () => {
    const into = join(dir, `into-${number++}`);
    mkdirSync(into);
    return into;
  };
  const opened = (passphrase: string, into = fresh()) => unpack(file(), into, async () => passphrase);

  it.each([undefined, 'a passphrase, ü'])('has every file as it was, with the passphrase %s', async (passphrase) => {
    const names = ['state/history/2026-11.jsonl', 'state/a "name" $(x)\n ü', `config/sites/${'n'.repeat(200)}.toml`];
    const size = await writeContainer(
      file(),
      each(whole(names.map((name) => entry(name, name.repeat(500))))),
      passphrase,
    );
    expect(statSync(file())).toMatchObject({ size });
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    const into = fresh();
    const { manifest, rdb } = await opened(passphrase ?? '', into);
    expect(manifest).toEqual(MANIFEST);
    expect(readFileSync(rdb, 'utf8')).toBe('REDIS');
    for (const name of names) expect(readFileSync(join(into, name), 'utf8')).toBe(name.repeat(500));
    expect(readdirSync(dir).filter((name) => name.endsWith('.new'))).toEqual([]);
  });

  it('says nothing without its passphrase, and is refused if any bit of it is another', async () => {
    await writeContainer(file(), each(whole([entry('config/config.toml', 'secret-name')])), 'right');
    const bytes = readFileSync(file());
    expect(bytes.includes('secret-name')).toBe(false);
    await expect(opened('wrong')).rejects.toMatchObject({ code: 'bad-input' });
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.nat(7), async (at, bit) => {
        const other = Buffer.from(bytes);
        other[at] = (other[at] ?? 0) ^ (1 << bit);
        writeFileSync(file(), other);
        await expect(opened('right')).rejects.toMatchObject({ code: 'bad-input' });
      }),
      { numRuns: 12 },
    );
  });

  it('that is cut off anywhere is refused', async () => {
    await writeContainer(file(), each(whole([entry('state/x', 'x'.repeat(2000))])));
    const bytes = readFileSync(file());
    for (let at = 0; at < bytes.length; at += 7) {
      writeFileSync(file(), bytes.subarray(0, at));
      await expect(opened('')).rejects.toMatchObject({ code: 'bad-input' });
    }
  });

  it.each([
    '../out',
    'state/../../out',
    '/tmp/out',
    'other/out',
    'state//out',
    'state/./out',
    'config',
    'queue.rdb/out',
  ])('with a file named %s is refused, and nothing leaves its directory', async (name) => {
    await writeContainer(file(), each(whole([entry(name, 'out')])));
    const into = fresh();
    await expect(opened('', into)).rejects.toMatchObject({ code: 'bad-input' });
    expect(existsSync(join(into, '../out'))).toBe(false);
    expect(existsSync('/tmp/out')).toBe(false);
  });

  it.each<[string, readonly TarEntry[]]>([
    ['a file twice', [entry('state/x', '1'), entry('state/x', '2')]],
    ['a file that is also a directory', [entry('state/x', '1'), entry('state/x/y', '2')]],
    ['a name that no file system has', [entry(`state/${'n'.repeat(300)}`, '1')]],
  ])('with %s is refused in a sentence', async (_, more) => {
    await writeContainer(file(), each(whole(more)));
    await expect(opened('')).rejects.toMatchObject({ code: 'bad-input' });
  });

  it.each([
    ['no JSON', 'hello'],
    ['a time beyond any calendar', JSON.stringify({ ...MANIFEST, at: 1e300 })],
    ['megabytes', ' '.repeat(2 << 20)],
  ])('whose manifest is %s is refused in a sentence', async (_, text) => {
    await writeContainer(file(), each([entry(MANIFEST_NAME, text), entry(QUEUE_NAME, 'REDIS')]));
    await expect(opened('')).rejects.toMatchObject({ code: 'bad-input' });
  });

  it('makes files that can be read, whatever their modes were', async () => {
    await writeContainer(file(), each(whole([{ name: 'state/x', mode: 0, content: Buffer.from('x') }])));
    const into = fresh();
    await opened('', into);
    expect(statSync(join(into, 'state/x')).mode & 0o777).toBe(0o600);
  });

  it('replaces a file, and the one that a link names, but no pipe and no directory', async () => {
    const write = (path: string) => writeContainer(path, each(whole([])));
    const names = ['target', 'link', 'pipe', 'directory'].map((name) => join(dir, name));
    const [target = '', link = '', pipe = '', directory = ''] = names;
    writeFileSync(target, 'before');
    symlinkSync(target, link);
    mkdirSync(directory);
    execFileSync('mkfifo', [pipe]);
    await write(link);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, 'utf8')).toContain('gryphus-backup');
    for (const path of [pipe, directory])
      await expect(write(path)).rejects.toMatchObject({ code: 'output-unwritable' });
    expect(lstatSync(pipe).isFIFO()).toBe(true);
    // Opening a pipe without a writer would never return.
    for (const path of [pipe, directory])
      await expect(unpack(path, fresh(), async () => '')).rejects.toMatchObject({ code: 'bad-input' });
    expect(readdirSync(dir).filter((name) => name.endsWith('.new'))).toEqual([]);
  });

  it('removes what one that was killed left a day ago, and nothing else', async () => {
    const old = new Date(Date.now() - 2 * 86_400_000);
    const left = (suffix: string) => {
      writeFileSync(`${file()}${suffix}`, '');
      return `${file()}${suffix}`;
    };
    const [gone, young, other] = [left(`.${'0a'.repeat(6)}.new`), left(`.${'0b'.repeat(6)}.new`), left('.mine.new')];
    for (const path of [gone, other]) utimesSync(path, old, old);
    await writeContainer(file(), each(whole([])));
    expect([gone, young, other].map((path) => existsSync(path))).toEqual([false, true, true]);
    for (const path of [young, other]) rmSync(path);
  });

  it('has the configuration alone, and goes on while files vanish, shrink and grow', async () => {
    const home = fresh();
    const paths = loadPaths({ GRYPHUS_HOME: home });
    const put = (name: string, content: string | Uint8Array) => {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), content);
    };
    const BIG = 9 << 20;
    for (const name of ['config.toml', 'sites/c1.toml', 'credentials/me.toml', 'netrc']) put(name, name);
    for (const name of ['backup', 'state.old/redis/x', '.restoring-7-x/state/y']) put(name, 'no');
    for (const name of ['a-first', 'b-vanishes', 'c-dir/x', 'e-last']) put(`state/${name}`, name);
    for (const name of ['d-gone', 'd-grows', 'd-shrinks']) put(`state/${name}`, Buffer.alloc(BIG, 1));
    put('rdb', 'REDIS');
    const names: string[] = [];
    async function* disturbed(): AsyncGenerator<TarEntry> {
      for await (const one of contentOf(paths, MANIFEST, join(home, 'rdb'))) {
        names.push(one.name);
        if (one.name === 'state/a-first') {
          rmSync(join(home, 'state/b-vanishes'));
          rmSync(join(home, 'state/c-dir'), { recursive: true });
        }
        if (one.name === 'state/d-gone') rmSync(join(home, one.name));
        if (one.name === 'state/d-grows') appendFileSync(join(home, one.name), 'more');
        if (one.name === 'state/d-shrinks') truncateSync(join(home, one.name), 5);
        yield one;
      }
    }
    await writeContainer(file(), disturbed());
    expect(names.filter((name) => name.startsWith('config/')).toSorted()).toEqual(
      ['config.toml', 'credentials/me.toml', 'netrc', 'sites/c1.toml'].map((name) => `config/${name}`),
    );
    const into = fresh();
    await opened('', into);
    expect(readdirSync(join(into, 'state')).toSorted()).toEqual([
      'a-first',
      'd-gone',
      'd-grows',
      'd-shrinks',
      'e-last',
    ]);
    for (const name of ['d-gone', 'd-grows'])
      expect(readFileSync(join(into, 'state', name)).equals(Buffer.alloc(BIG, 1))).toBe(true);
    expect(statSync(join(into, 'state/d-shrinks')).size).toBe(BIG);
    expect(readFileSync(join(into, 'state/e-last'), 'utf8')).toBe('e-last');
  });

  it('is not there at all if its directory cannot be written', async () => {
    await expect(writeContainer('/proc/no/backup', each([]))).rejects.toMatchObject({ code: 'output-unwritable' });
  });
});
