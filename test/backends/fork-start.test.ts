import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tinyElf } from '../../src/pool/worker/tiny-elf.ts';

const SOURCES = join(import.meta.dirname, '../../src/backends');
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gryphus start '));
});
afterEach(() => rmSync(dir, { recursive: true }));

const ARCHITECTURES = [
  { name: 'x64', uname: 'x86_64', machine: 62, tools: '', words: [] as string[] },
  { name: 'arm64', uname: 'aarch64', machine: 183, tools: 'aarch64-linux-gnu-', words: ['qemu-aarch64-static'] },
];
const there = (program: string) => spawnSync(program, ['--version']).error === undefined;
const BY_SHELL = ['/bin/sh', '-c', 'exec "$@"', 'sh'];

/** The program's file, as a site of this architecture writes it. */
function written(uname: string): string {
  const path = join(dir, `start.${uname}`);
  const script = `uname() { echo ${uname}; }; . '${SOURCES}/fork-start.sh'; write_starter`;
  writeFileSync(path, execFileSync('sh', ['-c', script]), { mode: 0o700 });
  return path;
}

describe.each(ARCHITECTURES)('the starter of a fork site: $name', ({ name, uname, machine, tools, words }) => {
  it.skipIf(!there(`${tools}as`))('is what its source says', () => {
    const [object, code] = [join(dir, 'start.o'), join(dir, 'start.bin')];
    execFileSync(`${tools}as`, ['-o', object, join(SOURCES, `fork-start/start.${name}.s`)]);
    execFileSync(`${tools}objcopy`, ['-O', 'binary', '-j', '.text', object, code]);
    expect(readFileSync(written(uname)).equals(tinyElf(machine, readFileSync(code)))).toBe(true);
  });

  const runs = words.length === 0 ? process.arch === name : there(words[0] ?? '');
  it.skipIf(!runs)('makes a directory and a link once, and starts programs in a session of their own', () => {
    const [command, ...first] = [...words, written(uname)];
    const start = (...args: string[]) =>
      // The shell beneath it ignores INT and QUIT, as those of background commands do.
      spawnSync('sh', ['-c', 'trap "" INT QUIT; exec "$@"', 'sh', command, ...first, ...args], { encoding: 'utf8' });
    const at = (file: string) => join(dir, file);
    expect([start(at("d 'x")).status, start(at("d 'x")).status, start(at('none/d')).status]).toEqual([0, 1, 1]);
    expect(statSync(at("d 'x")).isDirectory()).toBe(true);
    writeFileSync(at('file'), 'content');
    expect([start(at('file'), at('link')).status, start(at('file'), at('link')).status]).toEqual([0, 1]);
    expect(statSync(at('link')).nlink).toBe(2);
    expect([start().status, start('a', 'b', 'c').status]).toEqual([1, 1]);
    const odd = ["it's", 'a\nb', '$(id)', '', '*', '-x'];
    const told = start(...BY_SHELL, '/bin/sh', '-c', 'printf "<%s>" "$@"; exit 7', 'x', ...odd);
    expect([told.stdout, told.status]).toEqual([odd.map((word) => `<${word}>`).join(''), 7]);
    const script = at('no interpreter');
    writeFileSync(script, 'echo "$0: $1"; exit 3\n', { mode: 0o700 });
    const by = start(...BY_SHELL, script, 'one');
    expect([by.stdout, by.status]).toEqual([`${script}: one\n`, 3]);
    expect(start(...BY_SHELL, '/no/such/program').status).toBe(127);
    // The emulator has signals of its own.
    if (words.length > 0) return;
    const facts = 'read -r all </proc/self/stat; set -- ${all##*) }; echo "$$ $3 $4"; grep SigIgn /proc/self/status';
    const { stdout } = start(...BY_SHELL, '/bin/sh', '-c', facts);
    expect(stdout).toMatch(/^(\d+) \1 \1\nSigIgn:\t0+\n$/);
  });
});

it('a site where it cannot run does without', () => {
  for (const uname of ['riscv64', process.arch === 'x64' ? 'aarch64' : 'x86_64']) {
    // No emulator that the kernel starts by itself.
    const script = `BIN='${dir}' T='${dir}'; uname() { echo ${uname}; }; . '${SOURCES}/fork-start.sh'; find_starter; echo "start=$START"`;
    const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
    if (uname === 'riscv64' || !existsSync('/proc/sys/fs/binfmt_misc/qemu-aarch64')) expect(stdout).toBe('start=\n');
  }
  const script = `BIN='${dir}' T='${dir}'; . '${SOURCES}/fork-start.sh'; find_starter; find_starter; echo "$START"`;
  const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
  expect(existsSync(stdout.trim())).toBe(true);
});
