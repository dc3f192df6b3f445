import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeContainer } from '../../src/backup/container.ts';
import { MANIFEST_NAME, QUEUE_NAME } from '../../src/backup/content.ts';
import { unpack } from '../../src/backup/unpack.ts';
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

  it('is not there at all if its directory cannot be written', async () => {
    await expect(writeContainer('/proc/no/backup', each([]))).rejects.toMatchObject({ code: 'output-unwritable' });
  });
});
