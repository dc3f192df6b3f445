import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readAnswer } from '../../src/jobmanager/answer.ts';
import { ByteReader } from '../../src/jobmanager/byte-reader.ts';
import { mostOfPiece, piecesOf, sizesOf, watchWords } from '../../src/jobmanager/watching.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import type { FollowFiles } from '../../src/site/contract.ts';

const SRC = join(import.meta.dirname, '../../src/jobmanager');
const source = (name: string) => readFileSync(join(SRC, name), 'utf8');
const MAIN = source('jobmanager.sh');
/** What the main file defines for its pieces. */
const BASE = [
  /^umask 077\n/m,
  /^set -ufC\nunset LC_ALL\nLC_ALL=C\n/m,
  /^say\(\).*\n/m,
  /^part\(\).*\n/m,
  /^ENCODE='[^']*'\n/m,
  /^is_key\(\).*\n/m,
].map((one) => one.exec(MAIN)?.[0] ?? 'exit 99\n');

const key = 'aaaaaaaaaa.1.0.1' as AttemptKey;
const ODD = [
  'a b',
  "a'b",
  'c"d',
  '$(touch made)',
  '`touch made`',
  'g\nh',
  'i\\j',
  'x:y',
  'ü',
  'end\n',
  '-n',
  '%s',
  '%41',
];

describe.each([
  { shell: ['dash'], tools: '' },
  { shell: ['bash', '--posix'], tools: '' },
  { shell: ['busybox', 'sh'], tools: 'busybox' },
])('files that grow, seen by $shell.0', ({ shell, tools }) => {
  let dir: string;
  let work: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gry-watch-'));
    work = join(dir, 'jobs', key, 'work');
    mkdirSync(work, { recursive: true });
    mkdirSync(join(dir, 'T'));
    mkdirSync(join(dir, 'bin'));
    for (const name of tools === '' ? [] : 'awk cat find head mv rm sh stat tail wc'.split(' '))
      symlinkSync('/bin/busybox', join(dir, 'bin', name));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  /** One after the other, as in polls of one session. */
  async function ask(...all: readonly FollowFiles[]) {
    const [program = '', ...options] = shell;
    const polls = all.map((files, n) => {
      const followed = [{ key, stdout: 0, stderr: 0, files }];
      const about = watchWords(followed);
      const words = (kind: RegExp) => shellQuote(about.filter((one) => kind.test(one)).join(' '));
      const wanted = files.wanted.length === 0 ? '' : `send_pieces ${words(/^p/)} ${mostOfPiece(followed)}; `;
      return { followed, script: `watch_files ${words(/^w/i)} ${n * 1000}; ${wanted}say end ${n} 0` };
    });
    const script = `${BASE.join('')}\n${source('watching.sh')}\n${polls.map((poll) => poll.script).join('\n')}`;
    const out = execFileSync(program, [...options, '-c', `T=T; ${script}`], {
      cwd: dir,
      env: { PATH: `${join(dir, 'bin')}:${process.env['PATH']}` },
      maxBuffer: 1 << 28,
      // A bash whose input is a socket would take itself for a login.
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const reader = new ByteReader(Readable.from([out]));
    const answers = [];
    for (const [n, { followed }] of polls.entries()) {
      const answer = await readAnswer(reader, n);
      answers.push({ sizes: sizesOf(answer), pieces: piecesOf(answer, followed) });
    }
    return answers;
  }
  const files = (patterns: readonly string[], wanted: FollowFiles['wanted'] = [], afresh = false): FollowFiles => ({
    patterns,
    afresh,
    wanted,
  });
  const named = (sizes: readonly { name: string; bytes: number }[] = []) =>
    sizes.map(({ name, bytes }) => `${name} ${bytes}`).sort();

  it('have any names, and pieces of any bytes', async () => {
    const content = (i: number) => Buffer.from([i, 0, 255, 10, 13, 10]);
    mkdirSync(join(work, 'logs'));
    for (const [i, name] of ODD.entries()) writeFileSync(join(work, 'logs', name), content(i));
    const wanted = ODD.map((name, i) => ({ name: `logs/${name}`, offset: i % 3 }));
    const [first, second] = await ask(files(['logs/*'], [], true), files(['logs/*'], wanted));
    expect(named(first?.sizes)).toEqual(ODD.map((name) => `logs/${name} 6`).sort());
    expect(second?.sizes).toEqual([]);
    expect(second?.pieces.map(({ name }) => name)).toEqual(wanted.map(({ name }) => name));
    for (const [i, { data }] of (second?.pieces ?? []).entries())
      expect(Buffer.from(data).equals(content(i).subarray(i % 3))).toBe(true);
    expect(() => readFileSync(join(dir, 'made'))).toThrow('ENOENT');
  });

  it('are told when their size changes, from the beginning on request, and none deeper or through a link', async () => {
    mkdirSync(join(work, 'logs/deep'), { recursive: true });
    writeFileSync(join(work, 'a.out'), 'one');
    writeFileSync(join(work, 'logs/a.dat'), 'two2');
    writeFileSync(join(work, 'logs/deep/a.dat'), 'deep');
    writeFileSync(join(dir, 'secret.out'), 'secret');
    symlinkSync(join(dir, 'secret.out'), join(work, 'link.out'));
    symlinkSync(dir, join(work, 'logs/up'));
    symlinkSync(dir, join(work, 'way'));
    execFileSync('mkfifo', [join(work, 'fifo.out')]);
    const patterns = ['*.out', 'logs/*.dat', 'way/*.out'];
    const links = ['link.out', 'way/secret.out', 'fifo.out', 'logs/up/secret.out', 'none.out'];
    const [first, same, again, through] = await ask(
      files(patterns, [], true),
      files(patterns),
      files(patterns, [], true),
      files(
        patterns,
        links.map((name) => ({ name, offset: 0 })),
      ),
    );
    expect(named(first?.sizes)).toEqual(['a.out 3', 'logs/a.dat 4', 'logs/deep/a.dat 4'].slice(0, 2));
    expect([same?.sizes, again?.sizes.length, through?.sizes]).toEqual([[], 2, []]);
    expect(through?.pieces.map(({ data }) => data.length)).toEqual([0, 0, 0, 0, 0]);
    appendFileSync(join(work, 'a.out'), '!');
    truncateSync(join(work, 'logs/a.dat'), 1);
    const [after] = await ask(files(patterns));
    expect(named(after?.sizes)).toEqual(['a.out 4', 'logs/a.dat 1']);
  });

  it.skipIf(shell[0] !== 'dash')('may be 10,000', async () => {
    for (let i = 0; i < 10_000; i++) writeFileSync(join(work, `${i}.out`), '0123456789'.slice(0, i % 10));
    const [first, second] = await ask(files(['*.out'], [], true), files(['*.out']));
    expect(first?.sizes).toHaveLength(10_000);
    expect(named(first?.sizes)).toEqual(Array.from({ length: 10_000 }, (_, i) => `${i}.out ${i % 10}`).sort());
    expect(second?.sizes).toEqual([]);
  });
});
