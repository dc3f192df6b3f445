import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { beneath, codeOf } from '../../src/gridmanager/chirp/beneath.ts';
import { onFiles } from '../../src/gridmanager/chirp/files.ts';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import { type HomeOp } from '../../src/site/chirp.ts';
import { SLOW } from '../slow.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'chirp-'));
  mkdirSync(join(dir, 'root/a/b'), { recursive: true });
  mkdirSync(join(dir, 'outside'));
  writeFileSync(join(dir, 'outside/file'), 'SECRET');
  writeFileSync(join(dir, 'root/a/b/file'), 'inside');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** What a request answers: its bytes as text, or the name of the error. */
async function ask(
  op: HomeOp,
  words: readonly string[],
  numbers: readonly number[] = [],
  bytes = '',
  secrets = new Secrets([join(dir, 'root/state')], join(dir, 'root')),
): Promise<string> {
  const request = { op, words: [...words], numbers: [...numbers], session: '', n: 1, again: false };
  const bounds = { root: join(dir, 'root'), isClosed: secrets.isClosed, isAnchor: secrets.isAnchor };
  const once = { before: undefined, intend: () => undefined };
  try {
    const answer = await onFiles(request, Buffer.from(bytes), { bounds, secrets, ...once });
    return Buffer.from(answer?.bytes ?? '').toString();
  } catch (thrown) {
    return codeOf(thrown) ?? String(thrown);
  }
}

it('walks links and .. within the directory, and leads to nothing above it', async () => {
  symlinkSync('a/b', join(dir, 'root/down'));
  symlinkSync('../../a/b/file', join(dir, 'root/a/b/up'));
  symlinkSync('../../../outside/file', join(dir, 'root/a/b/out'));
  symlinkSync(join(dir, 'root/a'), join(dir, 'root/a/b/absolute'));
  symlinkSync('loop', join(dir, 'root/loop'));
  const read = (path: string) => ask('read', [path], [100, 0]);
  expect(await read('down/file')).toBe('inside');
  expect(await read('down/../b/file')).toBe('inside');
  expect(await read('a/b/up')).toBe('inside');
  expect(await read('a/b/absolute/b/file')).toBe('inside');
  expect(await read(join(dir, 'root/a/b/file'))).toBe('inside');
  for (const path of ['a/b/out', '../outside/file', 'a/../../outside/file', join(dir, 'outside/file'), 'down/../../..'])
    expect(await read(path), path).toBe('EACCES');
  expect(await read('loop')).toBe('ELOOP');
  expect(await read('a')).toBe('EISDIR');
  expect(await read('')).toBe('ENOENT');
});

it('closes the directories of keys, our own, and the dot files of the home directory', async () => {
  for (const path of ['root/.ssh', 'root/a/.ssh', 'root/state', 'root/.config']) mkdirSync(join(dir, path));
  for (const path of ['.ssh/id', 'a/.ssh/id', 'state/token', '.config/x', '.bashrc'])
    expect(await ask('open', [path, 'wc'], [0o644]), path).toBe('EACCES');
  expect(await ask('rename', ['a', '.ssh'])).toBe('EACCES');
  expect(await ask('rmall', ['a'])).toBe('EACCES');
  expect(await ask('open', ['a/.hidden', 'wc'], [0o644])).toMatch(/^\d+ /);
});

it('reads no private keys, under whatever name', async () => {
  writeFileSync(join(dir, 'root/proxy'), `${'x'.repeat(70_000)}\n-----BEGIN RSA PRIVATE KEY-----\n`);
  expect(await ask('link', ['proxy', 'other'])).toBe('');
  expect(await ask('read', ['other'], [10, 0])).toBe('EACCES');
  expect(await ask('open', ['proxy', 'r'])).toBe('EACCES');
});

it('does not wait for a pipe, and takes no devices', async () => {
  const { execFileSync } = await import('node:child_process');
  execFileSync('mkfifo', [join(dir, 'root/pipe')]);
  expect(await ask('read', ['pipe'], [1, 0])).toBe('EACCES');
  expect(await ask('append', ['pipe'], [], 'x')).toBe('EACCES');
});

it('makes no link that could lead out', async () => {
  expect(await ask('symlink', ['a/b', 'good'])).toBe('');
  expect(await ask('symlink', ['/etc', 'bad'])).toBe('EACCES');
  expect(await ask('symlink', ['a/../../x', 'bad'])).toBe('EACCES');
});

it('leads to nothing outside while directories and files are swapped for links', async () => {
  // Another thread swaps `a/b` and `a/b/file` for links that lead outside, as fast as it can.
  const swapper = new Worker(
    `const { renameSync, symlinkSync, mkdirSync, rmSync } = require('node:fs');
       const { workerData: root } = require('node:worker_threads');
       symlinkSync('../../outside', root + '/evil');
       symlinkSync('../../../outside/file', root + '/evilfile');
       for (;;) {
         try {
           renameSync(root + '/a/b', root + '/kept'); renameSync(root + '/evil', root + '/a/b');
           renameSync(root + '/a/b', root + '/evil'); renameSync(root + '/kept', root + '/a/b');
           renameSync(root + '/a/b/file', root + '/keptfile'); renameSync(root + '/evilfile', root + '/a/b/file');
           renameSync(root + '/a/b/file', root + '/evilfile'); renameSync(root + '/keptfile', root + '/a/b/file');
         } catch { }
       }`,
    { eval: true, workerData: join(dir, 'root') },
  );
  const answers = new Map<string, number>();
  const until = performance.now() + (SLOW ? 60_000 : 1500);
  try {
    while (performance.now() < until) {
      const said = [
        await ask('read', ['a/b/file'], [100, 0]),
        await ask('append', ['a/b/file'], [], ''),
        await ask('open', ['a/b/new', 'wc'], [0o600]),
        await ask('getdir', ['a/b']),
      ];
      for (const one of said) answers.set(one, (answers.get(one) ?? 0) + 1);
    }
  } finally {
    await swapper.terminate();
  }
  expect([...answers.keys()].filter((one) => one.includes('SECRET'))).toEqual([]);
  expect(readdirSync(join(dir, 'outside'))).toEqual(['file']);
  // Both were met: the file, and what had been put in its place.
  expect(answers.get('inside')).toBeGreaterThan(0);
  expect((answers.get('EACCES') ?? 0) + (answers.get('ELOOP') ?? 0) + (answers.get('ENOTDIR') ?? 0)).toBeGreaterThan(0);
}, 120_000);

it('answers in strides, and writes so', async () => {
  writeFileSync(join(dir, 'root/s'), 'abcdefghij');
  expect(await ask('read', ['s'], [4, 1, 2, 3])).toBe('bcef');
  await ask('write', ['s'], [0, 1, 2], 'XYZ');
  expect(await ask('read', ['s'], [100, 0])).toBe('XbYdZfghij');
  renameSync(join(dir, 'root/s'), join(dir, 'root/t'));
  expect(await ask('read', ['s'], [1, 0])).toBe('ENOENT');
});

it('does not let a key be read by writing over the words that tell of it', async () => {
  const key = `-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n`;
  writeFileSync(join(dir, 'root/key'), key);
  expect(await ask('write', ['key'], [0], 'x'.repeat(27))).toBe('EACCES');
  expect(readFileSync(join(dir, 'root/key'), 'utf8')).toBe(key);
  // A job may make a key of its own, in pieces.
  expect(await ask('open', ['made', 'wc'], [0o600])).toMatch(/^\d+ /);
  expect(await ask('write', ['made'], [0], key)).toBe('');
  expect(await ask('write', ['made'], [key.length], 'more')).toBe('');
});

it('neither moves nor opens to others our own directories, the home directory and those above', async () => {
  mkdirSync(join(dir, 'root/up/state'), { recursive: true });
  const secrets = new Secrets([join(dir, 'root/up/state')], join(dir, 'root'));
  const wish = (op: HomeOp, words: string[], numbers: number[] = []) => ask(op, words, numbers, '', secrets);
  for (const path of ['up/state', 'up', '.']) expect(await wish('chmod', [path], [0o777]), path).toBe('EACCES');
  for (const path of ['up/state', 'up']) {
    expect(await wish('rename', [path, 'elsewhere']), path).toBe('EACCES');
    expect(await wish('rmall', [path]), path).toBe('EACCES');
  }
  expect(await wish('rmdir', ['up/state'])).toBe('EACCES');
  expect(await wish('rename', ['a', 'elsewhere'])).toBe('');
});

it('holds one directory however deep a path is, and leaves .. only where it came from', async () => {
  const deep = Array.from({ length: 400 }, () => 'd').join('/');
  mkdirSync(join(dir, 'root', deep), { recursive: true });
  writeFileSync(join(dir, 'root', deep, 'file'), 'deep');
  const secrets = new Secrets([]);
  const bounds = { root: join(dir, 'root'), isClosed: secrets.isClosed, isAnchor: secrets.isAnchor };
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  let most = 0;
  await beneath(bounds, `${deep}/file`, true, async () => void (most = open() - before));
  expect(most).toBeLessThan(5);
  expect(await ask('read', [`${deep}/../../d/d/file`], [10, 0])).toBe('deep');
});

it('refuses what would be too long to answer: lists of megabytes, a million strides', async () => {
  writeFileSync(join(dir, 'root/s'), Buffer.alloc(1 << 20));
  expect(await ask('read', ['s'], [1 << 20, 0, 1, 1])).toBe('EFBIG');
  mkdirSync(join(dir, 'root/many'));
  const name = 'n'.repeat(245);
  for (let i = 0; i < 14_000; i++) linkSync(join(dir, 'root/s'), join(dir, 'root/many', `${name}${i}`));
  expect((await ask('getlongdir', ['many'])).slice(0, 9)).toBe('EFBIG');
});
