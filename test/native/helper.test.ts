import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { readImageHeader } from '../../src/staging/image.ts';
import { SLOW, some } from '../slow.ts';
import { HELPER, mover } from './mover.ts';

const NATIVE = join(import.meta.dirname, '../../native');
/** Of an image, each read once; `GRYPHUS_MUTATIONS` says another number. */
const MUTATIONS = Number(process.env['GRYPHUS_MUTATIONS'] ?? 1_000_000);

describe.skipIf(!existsSync(HELPER))('gryphus-helper', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-native-'));
  const moved = mover(root);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const threads = join(root, 'threads');
  execFileSync('gcc', ['-O2', '-o', threads, join(import.meta.dirname, 'threads.c'), '-lpthread']);

  // On one processor, the program that it stops has often just told that it is ready.
  it('finds each time that it works on this machine', () => {
    for (let i = 0; i < 25; i++) {
      const probed = spawnSync('taskset', ['-c', '0', HELPER, 'probe'], { encoding: 'utf8', timeout: 5000 });
      expect([i, probed.status, probed.stdout]).toEqual([i, 0, expect.stringContaining('vdso-')]);
    }
  });

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

  const built = { x64: 62, arm64: 183 };
  const programs = Object.entries(built).flatMap(([arch, machine]) =>
    ['gryphus-helper', 'gryphus-remote-io'].map((name) => [join(HELPER, '../..', arch, name), machine] as const),
  );
  it.each(programs.filter(([path]) => existsSync(path)))('is a small static program: %s', (path, machine) => {
    const bytes = readFileSync(path);
    expect(bytes.length).toBeLessThan(1 << 20);
    // Its processor, as ELF numbers them.
    expect(bytes.readUInt16LE(18)).toBe(machine);
    expect(bytes.includes('/lib/ld-')).toBe(false);
  });

  it('writes, of a later image, only what has changed, and goes on from it with its bases', async () => {
    const place = mkdtempSync(join(root, 'grows-'));
    const box = join(place, 'box');
    mkdirSync(box);
    const out = join(place, 'out');
    const image = join(place, 'image');
    const program =
      "import os, time\nm = bytearray(os.urandom(8 << 20)); s = sum(m); n = 0\nprint('up', flush=True)\n" +
      "while not os.path.exists('over'):\n  n += 1; s += 1 - m[n * 4099]; m[n * 4099] = 1; time.sleep(0.01)\nprint(sum(m) == s)";
    const start = (words: readonly string[], cwd: string) =>
      spawn(HELPER, words, { cwd, stdio: ['ignore', openSync(out, 'a'), 'ignore'] });
    const child = start(['run', 'python3', '-c', program], box);
    while (!existsSync(out) || readFileSync(out, 'utf8') === '') await sleep(20);
    const dump = (of: string, pid: number | undefined, ...more: string[]) => {
      const words = ['dump', of, String(pid), '--sandbox', box, '--to', image, '--stdout', out, ...more];
      const { status, stdout, stderr } = spawnSync(HELPER, words, { encoding: 'utf8' });
      expect(stderr).toBe('');
      expect(status).toBe(0);
      return Number(stdout);
    };
    const first = dump('--pid', child.pid);
    expect(first).toBeGreaterThan(8 << 20);
    for (let times = 0; times < 12; times++) expect(dump('--pid', child.pid)).toBeLessThan(first / 2);
    dump('--pid', child.pid, '--kill');
    const { bases, id } = readImageHeader(image);
    expect(bases.length).toBeGreaterThan(0);
    expect(bases).not.toContain(id);
    // What it no longer needs is not there.
    const there = readdirSync(place).filter((name) => name.startsWith('image.'));
    expect(there.sort()).toEqual(bases.map((base) => `image.${base}`).sort());
    const other = join(place, 'other');
    mkdirSync(other);
    writeFileSync(join(other, 'over'), '');
    const restore = ['restore', '--from', image, '--sandbox', other, '--skip', 'over'];
    const restored = start(restore, other);
    expect(await new Promise((resolve) => restored.once('close', resolve))).toBe(0);
    expect(readFileSync(out, 'utf8')).toBe('up\nTrue\n');
    // A base that is damaged, or another one, or gone, is found before anything is touched.
    // The largest is the first: of later ones little may be needed, so that damage of the rest is none.
    const size = (name: string) => statSync(join(place, name)).size;
    const [base = ''] = there.toSorted((one, two) => size(two) - size(one));
    const whole = readFileSync(join(place, base));
    const inspected = () => spawnSync(HELPER, ['inspect', image], { encoding: 'utf8' });
    expect(inspected().status).toBe(0);
    writeFileSync(join(place, base), whole.subarray(0, whole.length - 1));
    expect(inspected().stderr).toContain('is not a whole image');
    rmSync(join(place, base));
    expect(inspected().stderr).toContain('cannot be read');
    const damaged = Buffer.from(whole);
    damaged.fill(7, 4096, damaged.length >> 1);
    writeFileSync(join(place, base), damaged);
    const last = start(restore, other);
    expect(await new Promise((resolve) => last.once('close', resolve))).toBe(1);
  }, 120_000);

  it.runIf(SLOW)(
    'reads no damaged image, and no memory that is not its own',
    () => {
      execFileSync('make', ['-s', '-C', NATIVE, `OUT=${root}`, `${root}/fuzz`], { stdio: 'inherit' });
      const program = join(root, 'all-kinds');
      execFileSync('gcc', ['-O2', '-static', '-o', program, join(import.meta.dirname, 'all-kinds.c'), '-lpthread']);
      const box = join(root, 'fuzzed');
      mkdirSync(box);
      const image = join(root, 'whole');
      const child = spawn(HELPER, ['run', program], { cwd: box, stdio: 'ignore' });
      while (!existsSync(join(box, 'up'))) spawnSync('sleep', ['0.1']);
      const dump = ['dump', '--pid', String(child.pid), '--sandbox', box, '--to', image, '--kill'];
      expect(spawnSync(HELPER, dump, { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
      const words = [image, String(MUTATIONS), String(Math.floor(Math.random() * 1e9))];
      // Refused images leave memory behind.
      const env = { ASAN_OPTIONS: 'detect_leaks=0' };
      const said = spawnSync(join(root, 'fuzz'), words, { encoding: 'utf8', env });
      expect(said, words.join(' ')).toMatchObject({ status: 0, stderr: '' });
      expect(said.stdout).toMatch(/^[1-9]\d* of \d+ were refused/);
      process.stderr.write(said.stdout);
    },
    1_800_000,
  );
});
