import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { dumped, HELPER } from './mover.ts';

describe.skipIf(!existsSync(HELPER))('a call of the kernel that a checkpoint interrupts', () => {
  const root = mkdtempSync(join(tmpdir(), 'gryphus-interrupted-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const program = join(root, 'interrupted');
  execFileSync('gcc', ['-O2', '-o', program, join(import.meta.dirname, 'interrupted.c'), '-lpthread']);

  let runs = 0;
  const start = async (...words: readonly string[]) => {
    const box = join(root, `box${++runs}`);
    mkdirSync(box);
    const out = `${box}.out`;
    const run = (more: readonly string[]) => {
      const stream = openSync(out, 'a');
      return spawn(HELPER, more, { cwd: box, stdio: ['ignore', stream, stream] });
    };
    const child = run(['run', program, ...words]);
    const image = `${box}.image`;
    const streams = ['--stdout', out, '--stderr', out];
    const dump = ['dump', '--pid', String(child.pid), '--sandbox', box, '--to', image, ...streams];
    const restore = () => run(['restore', '--from', image, '--sandbox', box]);
    while (!existsSync(out) || readFileSync(out, 'utf8') === '') await sleep(10);
    return { child, dump, restore, said: () => readFileSync(out, 'utf8') };
  };
  const end = (child: ChildProcess) => new Promise((resolve) => child.once('close', resolve));

  it('sleeps as long as it was to, however often that is', async () => {
    const { child, dump, said } = await start('sleeps', '1500');
    const ended = end(child);
    for (let times = 0; times < 3; times++) expect(await dumped(child, dump)).toBe('');
    await ended;
    expect(said()).toBe('up\n0 0 0 0 slept\n');
    const other = await start('sleeps', '1500');
    expect(await dumped(other.child, other.dump)).toBe('');
    expect(await dumped(other.child, [...other.dump, '--kill'])).toBe('');
    await end(other.restore());
    expect(other.said()).toBe('up\n0 0 0 0 slept\n');
  });

  it.each([[], ['--kill']])('ends by a signal that comes meanwhile (%s)', async (...kill) => {
    const { child, dump, restore, said } = await start('signal');
    const isWithin = (pid: number | undefined, what: RegExp) => what.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    while (!isWithin(child.pid, /^State:\tS/m)) await sleep(1);
    const childEnded = end(child);
    const dumping = spawn(HELPER, [...dump, ...kill], { stdio: 'ignore' });
    const dumpEnded = end(dumping);
    // Without a pause: it is not stopped for long.
    while (!isWithin(child.pid, /^(TracerPid:\t[1-9]|State:\tZ)/m) && !isWithin(dumping.pid, /^State:\tZ/m)) continue;
    child.kill('SIGUSR1');
    expect(await dumpEnded).toBe(0);
    await (kill.length === 0 ? childEnded : end(restore()));
    expect(said()).toBe('up\nwoken: -1 1\n');
  });
});
