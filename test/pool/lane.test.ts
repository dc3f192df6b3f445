import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { isLight, Lane, type LaneOptions } from '../../src/pool/lane.ts';
import { lanesIn, type LaneSlot } from '../../src/pool/lane-slot.ts';
import { isAlive } from '../../src/util/process-identity.ts';
import { shellWords } from '../../src/util/shell-quote.ts';
import { until } from '../agent/agent.ts';

const SIZE = { cpus: 1, memoryMb: 128, diskKb: 1024, gpus: 0 };
const script = readFileSync(join(import.meta.dirname, '../../src/pool/lane.sh'), 'utf8');
const LINE = '{ gryphus_run 0 0 k /bin/sh -c';

describe('a lane', () => {
  let dir: string;
  let count = 0;
  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'gryphus lane $(x) '))));
  afterEach(() => rmSync(dir, { recursive: true, force: true }));

  const spec = (executable: string): LaneOptions['spec'] => ({
    executable: { kind: 'there', path: executable },
    args: [],
    env: { GREETING: "it's\n$(here)" },
    stdin: undefined,
    inputs: [],
    joinStderr: false,
    shared: { cwd: dir, executable },
  });
  const lane = (executable: string) =>
    new Lane({ script, lanesDir: dir, env: { PATH: process.env['PATH'] }, base: 'b', spec: spec(executable) });
  const give = (to: Lane, executable: string, args: readonly string[]) => {
    const key = `a.1.0.${++count}` as AttemptKey;
    return { key, slot: to.give({ key, claim: 'c', size: SIZE, lease: 60, spec: { ...spec(executable), args } }) };
  };
  async function ran(to: Lane, executable: string, args: readonly string[]): Promise<LaneSlot> {
    const { key, slot } = give(to, executable, args);
    await new Promise<void>((done) => to.run(key, done));
    return slot;
  }
  const text = (slot: LaneSlot, stream: 'stdout' | 'stderr') => readFileSync(slot.stream(stream), 'utf8');

  it('gives each task its arguments as they are, its environment, no input, and streams of its own', async () => {
    const sh = lane('/bin/sh');
    const odd = ["it's", 'a\nb', '$(id)', '"', '; }', '', 'ü', '*', '\\'];
    const first = await ran(sh, '/bin/sh', [
      '-c',
      'printf "<%s>" "$@"; cat; echo "$GREETING" >&2; pwd >&2',
      'x',
      ...odd,
    ]);
    expect(text(first, 'stdout')).toBe(odd.map((word) => `<${word}>`).join(''));
    expect(text(first, 'stderr')).toBe(`it's\n$(here)\n${dir}\n`);
    const second = await ran(sh, '/bin/sh', ['-c', 'echo "$GRYPHUS_KEY"']);
    expect(text(second, 'stdout')).toBe('a.1.0.2\n');
    expect(text(first, 'stdout')).not.toContain('a.1');
    first.remove();
    expect(text(first, 'stdout')).toBe('');
    sh.end();
    await until('the shell to end', () => !isAlive(sh.identity) || undefined);
    second.remove();
    await until('the directory to go', () => readdirSync(dir).length === 0 || undefined);
  });

  it('tells a status from a signal', async () => {
    const sh = lane('/bin/sh');
    const ends = [];
    for (const command of [
      'exit 0',
      'exit 7',
      'exit 143',
      'kill -TERM $$',
      'kill -INT $$',
      'kill -KILL $$',
      'exit 200',
    ])
      ends.push((await ran(sh, '/bin/sh', ['-c', command])).exit());
    expect(ends.map((end) => [end?.status, end?.signaled])).toEqual([
      [0, false],
      [7, false],
      [143, false],
      [143, true],
      [130, true],
      [137, true],
      [200, false],
    ]);
    sh.end();
  });

  it('tells them apart for programs that it starts without a shell of their own, and leaves their words as they are', async () => {
    const node = lane(process.execPath);
    const ends = [];
    for (const [words, end] of [
      ['', 'process.exit(0)'],
      ['Killed\n', 'process.exit(7)'],
      ['', 'process.exit(137)'],
      ['some words', 'process.exit(137)'],
      ['some words', 'process.kill(process.pid, "SIGKILL")'],
      ['Killed\n', 'process.kill(process.pid, "SIGKILL")'],
      ['', 'process.kill(process.pid, "SIGTERM")'],
      ['', 'process.exit(147)'],
      ['', 'process.kill(process.pid, "SIGINT")'],
      ['', 'process.exit(200)'],
      ['', 'process.exit(0)'],
    ] as const) {
      const text = `require("fs").writeSync(2, ${JSON.stringify(words)}); ${end}; setInterval(() => 0, 1000)`;
      const slot = await ran(node, process.execPath, ['-e', text]);
      const exit = slot.exit();
      expect(readFileSync(slot.stream('stderr'), 'utf8')).toBe(words);
      ends.push([exit?.status, exit?.signaled]);
    }
    expect(ends).toEqual([
      [0, false],
      [7, false],
      [137, false],
      [137, false],
      [137, true],
      [137, true],
      [143, true],
      [147, false],
      [130, true],
      [200, false],
      [0, false],
    ]);
    node.end();
  });

  it.each([['dash'], ['bash'], ['busybox', 'sh']])('is told the same by %s', (shell, ...applet) => {
    const tasks = ['process.kill(process.pid, "SIGKILL")', 'process.exit(137)', 'process.exit(3)', 'process.exit(0)'];
    const lines = tasks.map((text, n) => {
      const program = `require("fs").writeSync(2, "words"); ${text}; setInterval(() => 0, 1000)`;
      return `{ gryphus_run ${n} ${n} k${n} ${shellWords([process.execPath, '-e', program])}; }\n`;
    });
    const unwritable = '{ gryphus_run 4 nowhere/4 k4 /bin/true; }\n{ gryphus_run 5 5 k5 /bin/true; }\n';
    const begin = `gryphus_d=${shellWords([dir])}\nexec 2>>"$gryphus_d/said" 3>>"$gryphus_d/log"\ngryphus_apart=\n`;
    const input = `${begin}${script}${lines.join('')}${unwritable}`;
    const { stdout } = spawnSync(shell, [...applet, '-s', 'gryphus-starter'], { input, encoding: 'utf8' });
    const ends = ['0 137 1', '1 137 0', '2 3 0', '3 0 0', expect.stringMatching(/^4 [12] 2$/), '5 0 0'];
    const log = readFileSync(join(dir, 'log'), 'utf8').trim().split('\n');
    expect(log.filter((_, i) => i % 2 === 1)).toEqual(ends);
    expect(stdout.match(/^\d+ \d+ \d$/gm)).toEqual([...ends.slice(0, 3), ends[4]]);
    for (const n of tasks.keys()) expect(readFileSync(join(dir, `${n}.err`), 'utf8')).toBe('words');
  });

  it('ends what it runs after its worker is gone, and another worker finds what became of it', async () => {
    const sh = lane('/bin/sh');
    (await ran(sh, '/bin/sh', ['-c', 'true'])).remove();
    const ended = await ran(sh, '/bin/sh', ['-c', 'echo one; exit 3']);
    const running = give(sh, '/bin/sh', ['-c', 'sleep 0.3; echo two']);
    sh.run(running.key, () => undefined);
    const never = give(sh, '/bin/sh', ['-c', 'echo never']);
    sh.end();
    await until('the shell to end', () => !isAlive(sh.identity) || undefined);
    const found = lanesIn(dir);
    expect(
      found.map(({ slot, record }) => [slot.n, record.key, slot.exit()?.status, slot.startedAt() !== undefined]),
    ).toEqual([
      [1, `a.1.0.${count - 2}`, 3, true],
      [2, running.key, 0, true],
      [3, never.key, undefined, false],
    ]);
    expect(found[0]?.record.spec.args).toEqual(['-c', 'echo one; exit 3']);
    expect(text(ended, 'stdout')).toBe('one\n');
    expect(text(running.slot, 'stdout')).toBe('two\n');
    for (const { slot } of found) slot.remove();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('runs nothing of a line that was cut', async () => {
    const sh = lane('/bin/sh');
    sh.tell(`${LINE} 'echo x > "$0"' '${join(dir, 'made')}' `);
    sh.end();
    await until('the shell to end', () => !isAlive(sh.identity) || undefined);
    expect(readdirSync(dir).includes('made')).toBe(false);
  });

  it('is for what needs nothing but a directory', () => {
    const light = spec('/bin/true');
    expect(isLight(light)).toBe(true);
    expect(isLight({ ...light, env: { 'not a name': 'x' } })).toBe(false);
    expect(isLight({ ...light, shared: { cwd: '/', executable: 'exit' } })).toBe(false);
    expect(isLight({ ...light, shared: { cwd: '/', executable: '/bin/cat', stdin: '/etc/passwd' } })).toBe(false);
  });
});
