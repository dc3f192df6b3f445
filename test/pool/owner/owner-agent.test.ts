import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../../agent/agent.ts';
import { stopped, ticksOf } from './ticks.ts';
import { Typist } from './typist.ts';

const SOON = 40_000;
/** How long nothing may have run until a job counts as stopped, on a machine with much other work. Milliseconds. */
const QUIET_MS = 4000;

describe('the owner of this machine, at a terminal', () => {
  const agent = new TestAgent();
  let typist: Typist;
  const pool = (text: string) =>
    agent.config(`[pool]\ncpus = 1\nidle_sources = ["terminals"]\nignore_terminals = ["*", "!${terminal}"]\n${text}`);
  let terminal = '';

  beforeAll(async () => {
    typist = new Typist();
    terminal = await typist.terminal();
    pool(
      'policy = "hunter"\npolling_interval = "5s"\n[pool.attributes]\nStartIdleTime = 12\nKeyboardBusy = "KeyboardIdle < 12"\nHighLoad = 1000.0\nBackgroundLoad = 1000.0\n',
    );
    await agent.ok('up');
    await slot((ad) => ad['Cpus'] === 1);
  }, 120_000);
  afterAll(async () => {
    await typist.end();
    await agent.end();
  });

  async function slots(): Promise<Record<string, unknown>[]> {
    const { stdout } = await agent.run(['status', '--pool', '--json']);
    return stdout.trim() === '' ? [] : (JSON.parse(stdout) as Record<string, unknown>[]);
  }
  const slot = (wanted: (ad: Record<string, unknown>) => boolean, partitionable = true) =>
    until(
      'the slot to say so',
      async () => (await slots()).find((ad) => (ad['PartitionableSlot'] === true) === partitionable && wanted(ad)),
      SOON,
    ).catch(async (thrown: unknown) => {
      throw new Error(JSON.stringify(await slots(), undefined, 1), { cause: thrown });
    });
  const status = async (cluster: number) => (await agent.ads(cluster))[0]?.['JobStatus'];
  const key = async (cluster: number) =>
    JSON.parse(
      JSON.stringify((await slots()).find((ad) => ad['JobId'] === `${cluster}.0`)?.['GryphusKey'] ?? ''),
    ) as string;

  const job = (text: string) => {
    agent.file(`${(made += 1)}.sh`, `#!/bin/sh\n${text}\n`, 0o755);
    return `executable = ${made}.sh\nlog = job.log\nqueue\n`;
  };
  let made = 0;

  it('is never disturbed: the job stops within 13 s of the first key, uses no processor, and goes on later', async () => {
    const cluster = await agent.submit(job('while :; do :; done & while :; do :; done'));
    await until('it to run', async () => (await status(cluster)) === 2 || undefined, SOON).catch(
      async (thrown: unknown) => {
        throw new Error(`${await agent.ok('why', String(cluster))}\n${agent.log('pool-worker.log')}`, {
          cause: thrown,
        });
      },
    );
    const id = await key(cluster);
    const at = Date.now();
    typist.type();
    const took = (await stopped(id, QUIET_MS)) - at;
    expect(took).toBeLessThan(13_000);
    const before = ticksOf(id);
    await until('the queue to know', async () => (await status(cluster)) === 7 || undefined, SOON);
    expect(await slot((ad) => ad['Activity'] === 'Suspended', false)).toMatchObject({ State: 'Claimed' });
    expect(await agent.ok('why', String(cluster))).toMatch(
      /Suspended by its machine: its owner has been at the keyboard since \d\d:\d\d \(terminals\)\.\n/,
    );
    expect(await slot((ad) => ad['State'] === 'Owner')).toMatchObject({ START: false, CpuBusy: false });
    expect(await agent.ok('status', '--pool')).toMatch(
      /its owner has been at the keyboard since \d\d:\d\d \(terminals\)/,
    );
    const next = await agent.submit('executable = /bin/true\ntransfer_executable = false\nqueue\n');
    await until(
      'it to wait for the owner',
      async () =>
        (await agent.ok('why', String(next))).includes('its owner has been at the keyboard since') || undefined,
      SOON,
    );
    expect(ticksOf(id)).toBe(before);
    typist.rest();
    await until('both to be done or to go on', async () => (await status(cluster)) === 2 || undefined, 60_000);
    expect(ticksOf(id)).toBeGreaterThan(before);
    expect((await agent.ads(cluster))[0]).toMatchObject({ TotalSuspensions: 1, LastSuspensionTime: 0 });
    expect(Number((await agent.ads(cluster))[0]?.['CumulativeSuspensionTime'])).toBeGreaterThan(4);
    await agent.ok('rm', String(cluster), String(next));
  }, 180_000);

  it('is not disturbed either when the worker dies: the next one neither forgets nor resumes', async () => {
    const cluster = await agent.submit(job('while :; do :; done'));
    await until('it to run', async () => (await status(cluster)) === 2 || undefined, 60_000);
    const id = await key(cluster);
    typist.type();
    await stopped(id, QUIET_MS);
    await slot((ad) => ad['Activity'] === 'Suspended', false);
    const before = ticksOf(id);
    const { pid } = JSON.parse(readFileSync(join(agent.home, 'state/pool/worker/worker.pid'), 'utf8')) as {
      pid: number;
    };
    process.kill(pid, 'SIGKILL');
    await until(
      'the next worker',
      () => /found .*\.1\.0\.1|found /.test(agent.log('pool-worker.log')) || undefined,
      SOON,
    );
    await slot((ad) => ad['Activity'] === 'Suspended', false);
    expect(ticksOf(id)).toBe(before);
    typist.rest();
    await until('it to go on', () => ticksOf(id) > before || undefined, 60_000);
    await agent.ok('rm', String(cluster));
  }, 180_000);

  it('takes the machine with one word, and gives it back', async () => {
    const cluster = await agent.submit(job("trap 'exit 0' TERM; while :; do sleep 0.1; done"));
    await until('it to run', async () => (await status(cluster)) === 2 || undefined, 60_000);
    expect(await agent.ok('pool', 'off', '--for', '1h')).toMatch(/out of the pool for 1h/);
    expect(await slot((ad) => ad['State'] === 'Drained' && ad['Activity'] === 'Idle')).toMatchObject({ START: false });
    await until('it to wait', async () => (await status(cluster)) === 1 || undefined, SOON);
    expect(await agent.ok('why', String(cluster))).toMatch(
      /its owner took it out of the pool at (\d{4}-\d\d-\d\d )?\d\d:\d\d until (\d{4}-\d\d-\d\d )?\d\d:\d\d/,
    );
    await agent.ok('pool', 'keep', '1');
    await agent.ok('pool', 'on');
    await slot((ad) => ad['TotalCpus'] === 0);
    await agent.ok('pool', 'keep', '0');
    await until('it to run again', async () => (await status(cluster)) === 2 || undefined, 60_000);
    await agent.ok('rm', String(cluster));
  }, 180_000);
});
