import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { HELPER, mover } from './mover.ts';

const MOVES = 10;
const root = SLOW ? mkdtempSync(join(tmpdir(), 'gryphus-programs-')) : '';
const at = (name: string) => join(root, name);

/** Real programs, each with a few seconds of work whose result is checked. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  bash: ['bash', '-c', 'for ((i = 0; i < 600000; i++)); do ((s = (s * 31 + i) % 1000003)); done; echo $s'],
  dash: [
    'dash',
    '-c',
    'i=0 s=0; while [ $i -lt 1500000 ]; do i=$((i + 1)) s=$(((s * 31 + i) % 1000003)); done; echo $s',
  ],
  'dash with children': ['dash', '-c', 'for i in $(seq 1 400); do seq $i 20000 | tail -n 1 >x; echo $i; done; cksum x'],
  python3: [
    'python3',
    '-c',
    'import hashlib\nh = b""\nfor i in range(2500000): h = hashlib.sha256(h).digest()\nprint(h.hex())',
  ],
  'python3 with threads': [
    'python3',
    '-c',
    'import threading, zlib\nr = [0] * 4\ndef work(k):\n  for i in range(60000): r[k] = zlib.crc32(b"x%d" % i * 300, r[k])\nt = [threading.Thread(target=work, args=(k,)) for k in range(4)]\n[x.start() for x in t]; [x.join() for x in t]\nprint(r)',
  ],
  perl: [
    'perl',
    '-e',
    'my %h; $h{$_ % 1000} += $_ * 7 % 13 for 1 .. 9000000; print "$_ $h{$_}\n" for sort keys %h; exit 3',
  ],
  mawk: ['mawk', 'BEGIN { for (i = 0; i < 25000000; i++) s = (s * 31 + i) % 1000003; print s }'],
  sed: ['sed', '-E', 's/([aeiou])([^aeiou]*)/\\2\\1/g; s/(.)(.*)(.)/\\3\\2\\1/', at('text')],
  xz: ['xz', '-6', '-c', at('text')],
  'xz with threads': ['xz', '-T2', '-6', '--block-size=1MiB', '-c', at('text')],
  gzip: ['gzip', '-9', '-n', '-c', at('binary')],
  bzip2: ['bzip2', '-9', '-c', at('binary')],
  zstd: ['zstd', '-19', '-T1', '-q', '-c', at('text')],
  sort: ['sort', '-S', '4M', '-T', '.', '--parallel=2', ...Array.from({ length: 9 }, () => at('text'))],
  // In memory: the lock that it holds on a file while it works is not carried.
  sqlite3: [
    'sqlite3',
    ':memory:',
    'create table t(a integer, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) insert into t select i * 7919 % 300007, hex(i) from n; create index x on t(b); select sum(a), count(distinct b), max(b) from t; select count(*) from t a join t b on a.a = b.a + 1;',
  ],
  bc: ['bc', '-l', at('pi.bc')],
  factor: ['sh', '-c', 'seq 1000000000000000000 1000000000000040000 | factor | cksum'],
  m4: ['m4', at('hanoi.m4')],
  jq: ['jq', '-n', '[range(1500000)] | map(. * 7919 % 1000003) | sort | [.[0], .[1000], add]'],
  tclsh: ['tclsh', at('sum.tcl')],
  gfortran: [at('fortran')],
  OpenMP: [at('openmp')],
  gcc: ['gcc', '-O3', '-S', '-o', '-', at('large.c')],
  make: ['make', '-s', '-f', at('Makefile')],
  busybox: ['busybox', 'sh', '-c', 'for i in $(busybox seq 1 300); do busybox seq $i 20000 | busybox md5sum; done'],
};

describe.skipIf(!existsSync(HELPER) || !SLOW)('real programs', () => {
  const moved = mover(root);
  beforeAll(prepare, 60_000);
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it.each(Object.entries(PROGRAMS).filter(([, [program = '']]) => isThere(program)))(
    '%s has the same result after ten checkpoints at random moments, or as many as its time allows',
    async (_, command) => {
      const began = performance.now();
      const alone = await moved(command, []);
      const mean = (performance.now() - began) / (MOVES + 1);
      expect(alone.out).not.toBe('');
      // A machine that has become faster meanwhile ends it too soon.
      let most = 0;
      for (let least = mean; most < MOVES && least > mean / 8; least /= 2) {
        const pauses = Array.from({ length: MOVES }, () => Math.random() * 1.6 * least);
        const { code, out, moves, said, err } = await moved(command, pauses);
        const how = { moves, said, err, pauses };
        expect({ code, same: out === alone.out, ...how }).toEqual({ code: alone.code, same: true, ...how });
        most = moves;
      }
      // A tree of processes is often in between: then it is tried again, and goes on meanwhile.
      expect(most).toBeGreaterThan(MOVES / 2);
    },
    600_000,
  );
});

function isThere(program: string): boolean {
  return program.startsWith('/') || spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

function prepare(): void {
  let seed = 1;
  const next = () => (seed = (seed * 48271) % 2147483647);
  const words = Array.from({ length: 5000 }, () => next().toString(36));
  const text = Array.from({ length: 700_000 }, (_, i) => `${words[next() % 5000]}${i % 12 === 0 ? '\n' : ' '}`).join(
    '',
  );
  writeFileSync(at('text'), text);
  writeFileSync(at('text.small'), text.slice(0, 400_000));
  writeFileSync(at('binary'), Buffer.from(Uint8Array.from({ length: 12 << 20 }, () => next() >> 12)));
  writeFileSync(at('pi.bc'), 'scale = 2500\n4 * a(1)\nquit\n');
  writeFileSync(
    at('hanoi.m4'),
    "define(`h', `ifelse($1, 0, `', `h(decr($1), $2, $4, $3)m($2, $3)h(decr($1), $4, $3, $2)')')define(`n', 0)define(`m', `define(`n', incr(n))')h(18, a, b, c)n\n",
  );
  writeFileSync(
    at('sum.tcl'),
    'set s 0\nfor {set i 0} {$i < 6000000} {incr i} { set s [expr {($s * 31 + $i) % 1000003}] }\nputs $s\n',
  );
  writeFileSync(
    at('f.f90'),
    'program f\ninteger :: i, j, k\nreal(8) :: a(300,300), b(300,300), c(300,300)\na = 1.5d0; b = 0.5d0\ndo k = 1, 200\nc = matmul(a, b)\na = c / maxval(c) + 1d-3 * k\nend do\nprint *, sum(a)\nend program\n',
  );
  writeFileSync(
    at('o.c'),
    '#include <stdio.h>\n#include <math.h>\nint main(void) { double s = 0; for (int r = 0; r < 600; r++) {\n#pragma omp parallel for num_threads(3) schedule(static) reduction(+ : s)\nfor (int i = 0; i < 1000000; i++) s += (double)((i * 7 + r) % 13); }\nprintf("%.0f\\n", s); return 0; }\n',
  );
  const functions = Array.from(
    { length: 1200 },
    (_, i) =>
      `int f${i}(int *a, int n) { int s = ${i}; for (int k = 0; k < n; k++) s = s * 31 + a[k] % ${i + 3}; return s; }`,
  );
  writeFileSync(at('large.c'), functions.join('\n'));
  writeFileSync(
    at('Makefile'),
    `all: ${Array.from({ length: 16 }, (_, i) => `o${i}`).join(' ')}\n\t@cat o* | cksum\no%:\n\t@seq 1 60000 | sort -R --random-source=${at('binary')} | sort -n | cksum >$@; echo $*\n`,
  );
  execFileSync('gcc', ['-O2', '-fopenmp', '-o', at('openmp'), at('o.c'), '-lm']);
  execFileSync('gfortran', ['-O2', '-o', at('fortran'), at('f.f90')]);
}
