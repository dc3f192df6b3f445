import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { isLight, TaskRunner, type TaskRunnerOptions, prologue } from '../../src/pool/worker/task-runner.ts';
import { taskRunnersIn, type TaskRunnerSlot } from '../../src/pool/worker/task-runner-slot.ts';
import { placeWaiter, waited } from '../../src/pool/worker/waiter/waiter.ts';
import { isAlive } from '../../src/util/process-identity.ts';
import { shellWords } from '../../src/util/shell-quote.ts';
import { until } from '../agent/agent.ts';
import { ENDS } from './ends.ts';
import { SCRIPTS } from './scripts.ts';

const SIZE = { cpus: 1, memoryMb: 128, diskKb: 1024, gpus: 0 };
const script = SCRIPTS.taskRunner;
const LINE = '{ gryphus_run 0 0 k /bin/sh -c';

describe('a task runner', () => {
  let dir: string;
  let count = 0;
  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'gryphus task runner $(x) '))));
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
  const bin = mkdtempSync(join(tmpdir(), 'gryphus task runner waiter '));
  afterAll(() => rmSync(bin, { recursive: true, force: true }));
  const waiter = () => placeWaiter(bin, SCRIPTS);
  const codeOf = (slot: TaskRunnerSlot) => {
    const how = slot.exit()?.how;
    return how?.kind === 'exited' ? how.code : undefined;
  };

  const spec = (executable: string): TaskRunnerOptions['spec'] => ({
    executable: { kind: 'there', path: executable },
    args: [],
    env: { GREETING: "it's\n$(here)" },
    inputs: [],
    joinStderr: false,
    shared: { cwd: dir, executable },
  });
  const taskRunner = (executable: string) =>
    new TaskRunner({
      script,
      waiter: waiter(),
      taskRunnersDir: dir,
      env: { PATH: process.env['PATH'] },
      base: 'b',
      spec: spec(executable),
    });
  const give = (to: TaskRunner, executable: string, args: readonly string[]) => {
    const key = `a.1.0.${++count}` as AttemptKey;
    return { key, slot: to.give({ key, claim: 'c', size: SIZE, lease: 60, spec: { ...spec(executable), args } }) };
  };
  async function ran(to: TaskRunner, executable: string, args: readonly string[]): Promise<TaskRunnerSlot> {
    const { key, slot } = give(to, executable, args);
    await new Promise<void>((done) => to.run(key, done));
    return slot;
  }
  const text = (slot: TaskRunnerSlot, stream: 'stdout' | 'stderr') => readFileSync(slot.stream(stream), 'utf8');

  it('gives each task its arguments as they are, its environment, no input, and streams of its own', async () => {
    const sh = taskRunner('/bin/sh');
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

  it('tells every status and every signal', async () => {
    const sh = taskRunner('/bin/sh');
    const wrong = [];
    for (const { text, how } of ENDS) {
      const slot = await ran(sh, '/bin/sh', ['-c', text]);
      const told = slot.exit()?.how;
      if (JSON.stringify(told) !== JSON.stringify(how)) wrong.push([text, told]);
      slot.remove();
      slot.swept();
    }
    expect(wrong).toEqual([]);
    sh.end();
  });

  it('leaves what a program says last as it is, also where a shell would say it of a signal', async () => {
    const node = taskRunner(process.execPath);
    for (const [message, end, how] of [
      ['Killed\n', 'process.exit(137)', { kind: 'exited', code: 137 }],
      ['Killed\n', 'process.kill(process.pid, "SIGKILL")', { kind: 'signaled', signal: 9 }],
      ['Terminated\n', 'process.exit(143)', { kind: 'exited', code: 143 }],
    ] as const) {
      const text = `require("fs").writeSync(2, ${JSON.stringify(message)}); ${end}; setInterval(() => 0, 1000)`;
      const slot = await ran(node, process.execPath, ['-e', text]);
      expect([readFileSync(slot.stream('stderr'), 'utf8'), slot.exit()?.how]).toEqual([message, how]);
    }
    node.end();
  });

  it.each([['dash'], ['bash'], ['busybox', 'sh']])('is reported the same by %s', (shell, ...applet) => {
    const tasks = ['kill -9 $$', 'exit 137', 'exit 130', 'kill -2 $$', 'kill -9 $PPID; sleep 5', 'exit 0'];
    const lines = tasks.map((text, n) => {
      return `{ gryphus_run ${n} ${n} k${n} /bin/sh -c ${shellWords([`echo words >&2; ${text}`])}; }\n`;
    });
    const unwritable = '{ gryphus_run 6 nowhere/4 k4 /bin/true; }\n{ gryphus_run 7 7 k7 /bin/true; }\n';
    const input = `${prologue(dir, spec('/bin/sh'), waiter())}${script}${lines.join('')}${unwritable}`;
    writeFileSync(join(dir, 'reserved'), '');
    const { stdout } = spawnSync(shell, [...applet, '-s', 'gryphus-starter'], { input, encoding: 'utf8' });
    const ends = [
      { kind: 'signaled', signal: 9 },
      { kind: 'exited', code: 137 },
      { kind: 'exited', code: 130 },
      { kind: 'signaled', signal: 2 },
      '4 0 killed',
      { kind: 'exited', code: 0 },
      '6 0 failed',
      { kind: 'exited', code: 0 },
    ];
    const told = (text: string) => text.split('\n').map((line) => waited(line)?.how ?? line);
    expect(told(stdout.trim())).toEqual(ends);
    const log = readFileSync(join(dir, 'log'), 'utf8')
      .replace(/^\d?\n/gm, '')
      .trim();
    expect(told(log)).toEqual(ends);
    // The shell reports the waiter's own death.
    for (const n of tasks.keys())
      expect(readFileSync(join(dir, `${n}.err`), 'utf8')).toMatch(n === 4 ? /^words\n/ : /^words\n$/);
  });

  it('writes a record that does not fit into the space reserved for it', async () => {
    const sh = taskRunner('/bin/sh');
    const [name = ''] = readdirSync(dir);
    const inTaskRunner = join(dir, name);
    sh.tell(`exec 9>/dev/full\n`);
    await ran(sh, '/bin/sh', ['-c', 'exit 130']);
    await ran(sh, '/bin/sh', ['-c', 'kill -2 $$']);
    sh.end();
    await until('the shell to end', () => !isAlive(sh.identity) || undefined);
    expect(waited(readFileSync(join(inTaskRunner, 'log'), 'utf8'))).toBe(undefined);
    expect(taskRunnersIn(dir).map(({ slot }) => slot.exit()?.how)).toEqual([
      { kind: 'exited', code: 130 },
      { kind: 'signaled', signal: 2 },
    ]);
  });

  it('ends what it runs after its worker is gone, and another worker finds what became of it', async () => {
    const sh = taskRunner('/bin/sh');
    (await ran(sh, '/bin/sh', ['-c', 'true'])).remove();
    const ended = await ran(sh, '/bin/sh', ['-c', 'echo one; exit 3']);
    const running = give(sh, '/bin/sh', ['-c', 'sleep 0.3; echo two']);
    sh.run(running.key, () => undefined);
    const never = give(sh, '/bin/sh', ['-c', 'echo never']);
    sh.end();
    await until('the shell to end', () => !isAlive(sh.identity) || undefined);
    const found = taskRunnersIn(dir);
    expect(found.map(({ slot, record }) => [slot.n, record.key, codeOf(slot), slot.startedAt() !== undefined])).toEqual(
      [
        [1, `a.1.0.${count - 2}`, 3, true],
        [2, running.key, 0, true],
        [3, never.key, undefined, false],
      ],
    );
    expect(found[0]?.record.spec.args).toEqual(['-c', 'echo one; exit 3']);
    expect(text(ended, 'stdout')).toBe('one\n');
    expect(text(running.slot, 'stdout')).toBe('two\n');
    for (const { slot } of found) slot.remove();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('runs nothing of a line that was cut', async () => {
    const sh = taskRunner('/bin/sh');
    sh.tell(`${LINE} 'echo x > "$0"' '${join(dir, 'made')}' `);
    sh.end();
    await until('the shell to end', () => !isAlive(sh.identity) || undefined);
    expect(readdirSync(dir).includes('made')).toBe(false);
  });

  it('is for what needs nothing but a directory, or few small files', () => {
    const light = spec('/bin/true');
    expect(isLight(light)).toBe(true);
    expect(isLight({ ...light, env: { 'not a name': 'x' } })).toBe(false);
    expect(isLight({ ...light, shared: { cwd: '/', executable: 'exit' } })).toBe(false);
    const { shared: _, ...sandboxed } = light;
    expect(isLight(sandboxed)).toBe(true);
    expect(isLight({ ...sandboxed, cwd: '/' })).toBe(false);
    expect(isLight({ ...sandboxed, inputs: [{ kind: 'directory', name: 'd' }] })).toBe(false);
    expect(isLight({ ...light, proxy: 'mine' })).toBe(false);
  });
});
