import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { placeWaiter, waited, WAITER } from '../../src/pool/worker/waiter/waiter.ts';
import { waiterCode, waiterProgram } from '../../src/pool/worker/waiter/waiter-program.ts';
import { isAlive, processIdentity } from '../../src/util/process-identity.ts';
import { until } from '../agent/agent.ts';
import { ENDS, SOME_ENDS } from './ends.ts';
import { SCRIPTS } from './scripts.ts';

const SOURCES = join(import.meta.dirname, '../../src/pool/worker/waiter');
const scratch = mkdtempSync(join(tmpdir(), 'gryphus waiter '));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const BY_SHELL = ['/bin/sh', '-c', 'exec "$@"', 'sh'];
const there = (program: string) => spawnSync(program, ['--version']).error === undefined;

/** Of seccomp(2): numbers of the x32 calls, and what a filter returns. */
const X32 = 0x40000000;
const ALLOW = 0x7fff0000;
const ERRNO = 0x00050000;

/** What a filter returns for a system call. */
function decided(filter: Buffer, machine: number, nr: number): number {
  let value = 0;
  for (let line = 0; ; line++) {
    const code = filter.readUInt16LE(8 * line);
    const [yes = 0, no = 0] = filter.subarray(8 * line + 2);
    const k = filter.readUInt32LE(8 * line + 4);
    if (code === 0x06) return k;
    if (code === 0x20) value = k === 4 ? machine : nr;
    else if (code === 0x54) value = (value & k) >>> 0;
    else line += { 0x15: value === k, 0x25: value > k, 0x35: value >= k }[code] === true ? yes : no;
  }
}

placeWaiter(join(scratch, 'placed'), SCRIPTS);
for (const [name, text] of Object.entries({ 'waiter.sh': SCRIPTS.waiter, 'ends.sh': SCRIPTS.ends }))
  writeFileSync(join(scratch, name), text);
const arm = join(scratch, 'arm64');
writeFileSync(arm, waiterProgram('arm64') ?? '', { mode: 0o700 });
const sh = join(scratch, 'waiter.sh');

/** Which waiter, and with how many ends it is tested. */
const WAITERS: readonly [string, string[], typeof ENDS][] = [
  [process.arch, [join(scratch, 'placed', WAITER)], ENDS],
  // The emulator decides about signals from 32 on.
  ['arm64', ['qemu-aarch64-static', arm], SOME_ENDS.filter(({ how }) => how.kind === 'exited' || how.signal < 32)],
  ['sh', ['/bin/sh', sh], SOME_ENDS],
  ['bash', ['bash', '--posix', sh], SOME_ENDS],
  ['busybox', ['busybox', 'sh', sh], SOME_ENDS],
];

describe.each(WAITERS.filter(([, [program = '']]) => there(program)))('the waiter: %s', (_, waiter, ends) => {
  const [command = '', ...words] = [...waiter, ...BY_SHELL];
  const none = Array.from({ length: 6 }, () => 'ignore' as const);
  function run(args: readonly string[], nine: number | 'pipe' = 'pipe', input = '') {
    const stdio = ['pipe', 'pipe', 'pipe', ...none.slice(3), 'ignore', 'pipe', 'pipe', nine] as const;
    const { output, status } = spawnSync(command, [...words, ...args], { stdio: [...stdio], input });
    return { status, output: (output ?? []).map((bytes) => String(bytes ?? '')) };
  }

  it('tells every status and every signal', () => {
    const wrong = ends.flatMap(({ text, how }) => {
      const { output } = run(['/bin/sh', '-c', text]);
      const told = waited(output[9] ?? '')?.how;
      return JSON.stringify(told) === JSON.stringify(how) && output[8] === output[9] ? [] : [`${text}: ${output[9]}`];
    });
    expect(wrong).toEqual([]);
  }, 60_000);

  it('hands on arguments, input and streams as they are, and none of its own descriptors and signals', () => {
    const odd = ["it's", 'a\nb', '$(id)', '', '*', '\\', '-x'];
    const facts = 'ls /proc/self/fd | tr "\\n" " "; grep -E "SigBlk|SigIgn" /proc/self/status';
    const { output } = run(
      ['/bin/sh', '-c', `printf '<%s>' "$@"; cat; ${facts}; echo e >&2`, 'x', ...odd],
      'pipe',
      'in',
    );
    const [, descriptors = ''] = (output[1] ?? '').split(`${odd.map((word) => `<${word}>`).join('')}in`);
    expect(descriptors).toMatch(/^0 1 2 /);
    expect(descriptors).not.toMatch(/ [789] /);
    expect(output[1]).toMatch(/SigBlk:\t0+\nSigIgn:\t0+\n$/);
    expect(output[2]).toBe('e\n');
  });

  it('has a shell start what the kernel cannot, and says what the shell would', () => {
    const script = join(scratch, 'no interpreter');
    writeFileSync(script, 'echo "$0: $1"; exit 3\n', { mode: 0o700 });
    const { output } = run([script, 'one']);
    expect([output[1], waited(output[9] ?? '')?.how]).toEqual([`${script}: one\n`, { kind: 'exited', code: 3 }]);
    const missing = run(['/no/such/program']);
    expect(missing.output[2]).toMatch(/\/no\/such\/program: .*not found|No such file/);
    expect(waited(missing.output[9] ?? '')?.how).toEqual({ kind: 'exited', code: 127 });
  });

  it('says when it ended, and what it took', () => {
    const from = Date.now() / 1000;
    const { output } = run(['/bin/sh', '-c', 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done']);
    const record = waited(output[9] ?? '');
    expect(record?.endedAt).toBeGreaterThan(from - 1.1);
    expect(record?.endedAt).toBeLessThan(Date.now() / 1000 + 1);
    expect(record?.userSeconds).toBeGreaterThan(0.02);
    expect(record?.userSeconds).toBeLessThan(20);
  });

  it('writes into reserved space when the disk is full', () => {
    const full = openSync('/dev/full', 'w');
    const { status, output } = run(['/bin/sh', '-c', 'exit 130'], full);
    closeSync(full);
    expect([status, waited(output[7] ?? '')?.how]).toEqual([0, { kind: 'exited', code: 130 }]);
  });
});

describe('the waiter', () => {
  it('is passed over by every signal but KILL, by which its program ends with it', async () => {
    const note = join(scratch, 'pid');
    const child = spawn(join(scratch, 'placed', WAITER), [
      ...BY_SHELL,
      '/bin/sh',
      '-c',
      `echo $$ >'${note}'; sleep 60`,
    ]);
    await until('the program', () => (existsSync(note) && readFileSync(note, 'utf8') !== '') || undefined);
    const program = processIdentity(Number(readFileSync(note, 'utf8')));
    for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGPIPE'] as const) child.kill(signal);
    expect([isAlive(program), child.exitCode, child.signalCode]).toEqual([true, null, null]);
    child.kill('SIGKILL');
    await until('the program to end', () => !isAlive(program) || undefined);
  });

  it.each(['x64', 'arm64'])('is what the assembler makes of its source: %s', (arch) => {
    const prefix = arch === 'x64' ? ['x86_64-linux-gnu-', ''] : ['aarch64-linux-gnu-', ''];
    const native = process.arch === arch;
    const found = prefix.find((one) => (one !== '' || native) && there(`${one}as`));
    if (found === undefined) return;
    const object = join(scratch, `${arch}.o`);
    execFileSync(`${found}as`, [join(SOURCES, `waiter.${arch}.s`), '-o', object]);
    execFileSync(`${found}objcopy`, ['-O', 'binary', '-j', '.text', object, `${object}.code`]);
    expect(readFileSync(`${object}.code`).toString('hex')).toBe(waiterCode(arch).toString('hex'));
  });

  it.each([
    ['x64', 12, { 0xc000003e: [248, 249, 250, X32 + 248, X32 + 249, X32 + 250], 0x40000003: [286, 287, 288] }],
    ['arm64', 11, { 0xc00000b7: [217, 218, 219], 0x40000028: [309, 310, 311] }],
  ] as const)('takes the system calls for keys, and no others: %s', (arch, lines, keys) => {
    const filter = waiterCode(arch).subarray(-8 * lines);
    for (const [machine, expected] of Object.entries({ ...keys, 0xc0000016: [] })) {
      const plain = Array.from({ length: 600 }, (_, nr) => nr);
      const all = [...plain, ...plain.map((nr) => X32 + nr)];
      const missing = all.filter((nr) => decided(filter, Number(machine), nr) === ERRNO + 38);
      expect(missing).toEqual(expected);
      expect(all.filter((nr) => decided(filter, Number(machine), nr) === ALLOW)).toHaveLength(
        all.length - missing.length,
      );
    }
  });

  it('is a script where its program cannot be started', () => {
    const dir = join(scratch, 'none');
    const words = placeWaiter(dir, SCRIPTS);
    expect(words[0]).toBe(join(dir, WAITER));
    // Like a file system on which nothing may be executed.
    writeFileSync(join(dir, WAITER), waiterProgram(process.arch) ?? '', { mode: 0o600 });
    execFileSync('chmod', ['600', join(dir, WAITER)]);
    const instead = placeWaiter(dir, SCRIPTS);
    expect(instead.slice(0, 2)).toEqual(['/bin/sh', join(dir, 'waiter.sh')]);
  });
});
