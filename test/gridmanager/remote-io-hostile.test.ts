import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import { answerRemote } from '../../src/gridmanager/remote-io/answer-remote.ts';
import { RequestJournal } from '../../src/gridmanager/chirp/journal.ts';
import { REMOTE_CALLS } from '../../src/site/remote-io.ts';
import { SLOW } from '../slow.ts';

const PATHS = SLOW ? 1_000_000 : 15_000;
const EACCES = -13;

/** Links of the kernel that lead where their text does not say. */
const MAGIC: Readonly<Record<string, string>> = { fd: '/proc/self/fd', task: '/proc/thread-self', dev: '/dev/fd' };

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remote-'));
  mkdirSync(join(dir, 'root/a/b'), { recursive: true });
  mkdirSync(join(dir, 'root/state'));
  mkdirSync(join(dir, 'root/.ssh'));
  mkdirSync(join(dir, 'outside/in'), { recursive: true });
  mkdirSync(join(dir, 'read/in'), { recursive: true });
  for (const secret of ['outside/file', 'outside/in/file', 'root/state/token', 'root/.ssh/id'])
    writeFileSync(join(dir, secret), 'SECRET');
  writeFileSync(join(dir, 'root/proxy'), '-----BEGIN RSA PRIVATE KEY-----\nSECRET\n');
  linkSync(join(dir, 'root/proxy'), join(dir, 'root/hard'));
  for (const [name, target] of Object.entries(MAGIC)) symlinkSync(target, join(dir, 'root', name));
  writeFileSync(join(dir, 'root/a/b/file'), 'inside');
  writeFileSync(join(dir, 'read/file'), 'to read');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function asking() {
  const secrets = new Secrets([join(dir, 'root/state')], join(dir, 'nobody'));
  const journal = new RequestJournal(join(dir, 'journal'));
  let n = 0;
  return (call: string, words: readonly string[], numbers: readonly number[] = [], bytes = '') =>
    answerRemote(
      { op: 'remote_io', words: [call, ...words], numbers: [...numbers], session: 's', n: ++n, again: n % 7 === 0 },
      Buffer.from(bytes),
      { iwd: join(dir, 'root'), others: [join(dir, 'read')], secrets, journal },
    );
}

/** Everything in a directory, with its content. */
function everything(path: string): string {
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => `${name} ${statSync(join(path, name)).isFile() ? readFileSync(join(path, name), 'utf8') : '/'}`)
    .join('\n');
}

it(
  `reaches nothing that is not allowed by ${PATHS} hostile paths, while links are swapped`,
  async () => {
    const ask = asking();
    const closed = ['outside', 'read', 'root/state', 'root/.ssh'];
    const before = closed.map((one) => everything(join(dir, one)));
    const swapper = new Worker(
      `const { renameSync, symlinkSync, mkdirSync, writeFileSync, rmSync } = require('node:fs');
       const { workerData: root } = require('node:worker_threads');
       const target = ['../outside', root + '/../outside', '../read', 'state', '..', root, '/'];
       for (let i = 0; ; i++) {
         try { mkdirSync(root + '/a/b', { recursive: true }); writeFileSync(root + '/a/b/file', 'inside'); } catch { }
         try { rmSync(root + '/evil', { force: true }); symlinkSync(target[i % target.length], root + '/evil'); } catch { }
         try {
           renameSync(root + '/a/b', root + '/kept'); renameSync(root + '/evil', root + '/a/b');
           renameSync(root + '/a/b', root + '/evil'); renameSync(root + '/kept', root + '/a/b');
         } catch { }
       }`,
      { eval: true, workerData: join(dir, 'root') },
    );
    const names = [
      'a',
      'b',
      'file',
      '..',
      '.',
      '',
      'evil',
      'kept',
      'outside',
      'in',
      'state',
      'token',
      '.ssh',
      'id',
      'proxy',
      'hard',
      'cwd',
      ...Object.keys(MAGIC),
      // Descriptors of the process that answers: it has directories open.
      ...Array.from({ length: 12 }, (_, i) => String(20 + i)),
    ];
    const odd = ['a\nb', '$(id)', 'ä', "'", '\\', '..\0', 'x'.repeat(300), '~', '...', '. .', 'root', 'read'];
    const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)] as T;
    const starts = [
      join(dir, 'root'),
      join(dir, 'read'),
      join(dir, 'root'),
      '',
      '/',
      dir,
      join(dir, 'outside'),
      '/proc/self/root',
      '/proc/self/cwd',
      '/proc/self/fd',
      '/dev/fd',
    ];
    const path = () => {
      const parts = Array.from({ length: 1 + Math.floor(Math.random() * 6) }, () =>
        pick(Math.random() < 0.1 ? odd : names),
      );
      return [pick(starts), ...parts].join('/');
    };
    const calls = REMOTE_CALLS.filter((call) => call !== 'fsync');
    let read = 0;
    let refused = 0;
    try {
      for (let i = 0; i < PATHS; i += 8) {
        const answers = await Promise.all(
          Array.from({ length: 8 }, () => {
            // What removes is rarer, so that there is something left.
            const call = Math.random() < 0.5 ? pick(['read', 'open', 'list', 'write', 'stat'] as const) : pick(calls);
            const second = ['rename', 'link', 'symlink'].includes(call) ? path() : '';
            return ask(
              call,
              [path(), second],
              call === 'read' ? [0, 100] : [Math.floor(Math.random() * 64), 0o777],
              'EVIL',
            );
          }),
        );
        answers.push(await ask('read', [join(dir, 'root/a/b/file')], [0, 100]));
        for (const { result, bytes = '' } of answers) {
          if (result === EACCES) refused++;
          const said = Buffer.from(bytes).toString('latin1');
          if (/inside|EVIL/.test(said)) read++;
          expect(said.includes('SECRET')).toBe(false);
        }
      }
    } finally {
      await swapper.terminate();
    }
    expect(closed.map((one) => everything(join(dir, one)))).toEqual(before);
    expect(readdirSync(dir).sort()).toEqual(['journal', 'outside', 'read', 'root']);
    expect(refused).toBeGreaterThan(PATHS / 10);
    expect(read).toBeGreaterThan(0);
  },
  SLOW ? 3_600_000 : 120_000,
);

it('does not open directories of keys that the configuration names', async () => {
  const secrets = new Secrets([join(dir, 'root/state')], join(dir, 'nobody'));
  const home = {
    iwd: join(dir, 'root/a'),
    others: [join(dir, 'root/.ssh'), join(dir, 'root/state'), `${dir}/outside:rw`],
    secrets,
    journal: new RequestJournal(join(dir, 'journal')),
  };
  const ask = (call: string, path: string) =>
    answerRemote(
      { op: 'remote_io', words: [call, path, ''], numbers: [0, 9], session: 's', n: 1, again: false },
      Buffer.alloc(0),
      home,
    );
  const { bytes = '' } = await ask('roots', '');
  expect(Buffer.from(bytes).subarray(16).toString()).toBe(`${dir}/root/a\0${dir}/outside\0`);
  expect((await ask('read', join(dir, 'root/.ssh/id'))).result).toBe(EACCES);
  expect((await ask('read', join(dir, 'outside/file'))).result).toBe(6);
});

it('knows what arrived of an append when it comes again', async () => {
  const secrets = new Secrets([], join(dir, 'nobody'));
  const home = { iwd: join(dir, 'root'), others: [], secrets, journal: new RequestJournal(join(dir, 'journal')) };
  const log = join(dir, 'root/log');
  const append = (n: number, text: string, again: boolean) =>
    answerRemote(
      { op: 'remote_io', words: ['append', log, ''], numbers: [], session: 's', n, again },
      Buffer.from(text),
      home,
    );
  writeFileSync(log, 'before ');
  await append(1, 'hello ', false);
  await append(1, 'hello ', true);
  expect(readFileSync(log, 'utf8')).toBe('before hello ');
  // The process was killed in the middle of it.
  await append(2, 'world ', false);
  writeFileSync(log, 'before hello wor');
  await append(2, 'world ', true);
  expect(readFileSync(log, 'utf8')).toBe('before hello world ');
  // It was killed before it, and somebody else wrote.
  await append(3, 'again ', false);
  writeFileSync(log, 'before hello world others ');
  await append(3, 'again ', true);
  expect(readFileSync(log, 'utf8')).toBe('before hello world others again ');
  // It never came: what another request of the connection intended does not count.
  await append(4, 'last', true);
  expect(readFileSync(log, 'utf8')).toBe('before hello world others again last');
});

it('is not the file any more that was opened, if it was replaced', async () => {
  const ask = asking();
  const file = join(dir, 'root/a/b/file');
  const ino = String(statSync(file).ino);
  expect((await ask('write', [file, ino], [0], 'IN')).result).toBe(0);
  symlinkSync('a/b/file', join(dir, 'root/through'));
  expect((await ask('write', [join(dir, 'root/through'), ino], [0], 'in')).result).toBe(0);
  writeFileSync(join(dir, 'root/new'), 'new');
  expect((await ask('rename', [join(dir, 'root/new'), file])).result).toBe(0);
  expect((await ask('write', [file, ino], [0], 'XX')).result).toBe(-116);
  expect(readFileSync(file, 'utf8')).toBe('new');
});
