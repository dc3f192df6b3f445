import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SLOW, some } from '../slow.ts';
import { HELPER, mover } from './mover.ts';

const NATIVE = join(import.meta.dirname, '../../native');

describe.skipIf(!existsSync(HELPER))('gryphus-helper', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-native-'));
  const moved = mover(root);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const threads = join(root, 'threads');
  execFileSync('gcc', ['-O2', '-o', threads, join(import.meta.dirname, 'threads.c'), '-lpthread']);

  it.each(
    some(
      [
        ['four threads with a mutex, a condition and a recursive mutex', [threads, SLOW ? '300000' : '60000']],
        [
          'perl',
          [
            'perl',
            '-e',
            'my %h; $h{$_ % 1000} += $_ * 7 % 13 for 1 .. 1500000; print "$_ $h{$_}\\n" for sort keys %h; exit 3',
          ],
        ],
        ['awk', ['awk', 'BEGIN { for (i = 0; i < 4000000; i++) s = (s * 31 + i) % 1000003; print s }']],
        [
          'python3',
          [
            'python3',
            '-c',
            'import hashlib\nh = b""\nfor i in range(400000): h = hashlib.sha256(h).digest()\nprint(h.hex())',
          ],
        ],
        [
          'a shell with children and a pipe',
          [
            'sh',
            '-c',
            'seq 1 300000 | xz -6 >o.xz; for i in 1 2 3 4 5 6 7 8; do sleep 0.05; echo $i; done; xz -dc o.xz | cksum; exit 5',
          ],
        ],
      ] as const,
      4,
    ),
  )(
    'moves %s, with the same result',
    async (_, command) => {
      const alone = await moved(command, []);
      const pauses = Array.from({ length: 4 }, () => 30 + Math.random() * 150);
      const { code, out, moves } = await moved(command, pauses);
      expect({ code, out, pauses }).toEqual({ code: alone.code, out: alone.out, pauses });
      expect(moves).toBeGreaterThan(0);
    },
    240_000,
  );

  it.runIf(SLOW)(
    'reads no damaged image, and no memory that is not its own',
    () => {
      execFileSync('make', ['-s', '-C', NATIVE, `OUT=${root}`, `${root}/inspect-asan`], { stdio: 'inherit' });
      const box = join(root, 'fuzz');
      mkdirSync(box);
      writeFileSync(join(box, 'a file'), 'content');
      const child = spawn(HELPER, ['run', 'sleep', '100'], { cwd: box, stdio: 'ignore' });
      const image = join(root, 'whole');
      const dump = ['dump', '--pid', String(child.pid), '--sandbox', box, '--to', image, '--kill'];
      expect(spawnSync(HELPER, dump).status).toBe(0);
      const whole = readFileSync(image);
      // Most of it is memory; what is interpreted is around the sections' beginnings.
      const headers: number[] = [];
      for (let at = 64; at + 16 <= whole.length; at += 16 + Math.ceil(Number(whole.readBigUInt64LE(at + 8)) / 8) * 8)
        headers.push(at);
      const mutated = join(root, 'mutated');
      // It ends without giving its memory back.
      const env = { ASAN_OPTIONS: 'detect_leaks=0' };
      for (let turn = 0; turn < 400; turn++) {
        const bytes = Buffer.from(whole);
        for (let n = 0; n <= turn % 4; n++) {
          const at = (headers[Math.floor(Math.random() * headers.length)] ?? 64) + Math.floor(Math.random() * 96);
          if (at < bytes.length) bytes[at] = Math.random() < 0.5 ? 255 : Math.floor(Math.random() * 256);
        }
        writeFileSync(mutated, turn % 10 === 0 ? bytes.subarray(0, Math.floor(Math.random() * bytes.length)) : bytes);
        const { status, stderr } = spawnSync(join(root, 'inspect-asan'), ['inspect', mutated], {
          encoding: 'utf8',
          env,
        });
        expect([0, 1], stderr).toContain(status);
        expect(stderr).not.toContain('Sanitizer');
        if (!bytes.equals(whole)) expect(spawnSync(HELPER, ['inspect', mutated]).status).toBe(1);
      }
    },
    240_000,
  );
});
