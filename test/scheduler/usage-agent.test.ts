import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { UsageReport } from '../../src/client/usage.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

const agent = new TestAgent();
beforeAll(async () => {
  agent.config('[pool]\ncpus = 2\n');
  await agent.ok('up');
}, 60_000);
afterAll(async () => {
  killMatching('worker.mjs', agent);
  await agent.end();
});

/** A job that its user and the owner of its machine drive away, once each. */
async function vacatedOnce(): Promise<void> {
  const over = agent.file('over', '');
  rmSync(over);
  agent.file('last.sh', `#!/bin/sh\nuntil [ -e ${over} ]; do sleep 0.1; done\n`, 0o755);
  const cluster = await agent.submit('executable = last.sh\nbatch_name = three\nqueue\n');
  const runs = (starts: number) =>
    until('it to run', async () => {
      const [ad] = await agent.ads(cluster);
      return (ad?.['JobStatus'] === 2 && ad['NumJobStarts'] === starts) || undefined;
    });
  await runs(1);
  await agent.ok('vacate', String(cluster));
  await runs(2);
  await agent.ok('pool', 'off', '--now');
  await until('it to wait', async () => (await agent.ads(cluster))[0]?.['JobStatus'] === 1 || undefined);
  await agent.ok('pool', 'on');
  await runs(3);
  agent.file('over', '');
  await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
}

it('what jobs used is what the history says of them, also after a restart', async () => {
  const job = (batch: string, jobs: number) =>
    `executable = /bin/sleep\narguments = 0.7\nrequest_cpus = 2\nbatch_name = ${batch}\nqueue ${jobs}\n`;
  const clusters = [await agent.submit(job('one', 1)), await agent.submit(job('two', 2))].map(String);
  await agent.ok('wait', '--no-outcome', '--timeout', '60', ...clusters);
  const usage = async () => JSON.parse(await agent.ok('usage', '--by', 'batch', '--json')) as UsageReport;
  await vacatedOnce();
  const ads = JSON.parse(await agent.ok('history', '--json')) as { RemoteWallClockTime: number; RequestCpus: number }[];
  expect(ads).toHaveLength(4);
  const hours = ads.reduce((sum, ad) => sum + ad.RemoteWallClockTime * ad.RequestCpus, 0) / 3600;
  const before = await usage();
  expect(before.all.jobs).toBe(4);
  expect(before.all.preemptions).toEqual({ owner: 1, user: 1 });
  expect(Math.abs(before.all.capacityHours / hours - 1)).toBeLessThan(0.001);
  await agent.ok('down');
  const after = await usage().catch(async () => {
    await agent.ok('up');
    return usage();
  });
  expect(after.all).toMatchObject({ jobs: 4, capacityHours: before.all.capacityHours });
  expect(after.by.map(({ name, jobs }) => `${name} ${jobs}`).sort()).toEqual(['one 1', 'three 1', 'two 2']);
  expect(after.local.map(({ daemon }) => daemon)).toEqual(expect.arrayContaining(['scheduler', 'redis-server']));
  expect(after.all.leverage).toBeGreaterThan(0);
  // The Scheduler looks a last time when it ends.
  expect(after.machines).toMatchObject([{ availability: 1 }]);
  const text = await agent.ok('usage');
  expect(text).toContain('Total');
  expect(text).toContain('Preemptions: 2 (owner 1, user 1)');
  expect(text).toMatch(/\nMachine .*\n\S+ .* 100\.0 %/);
  expect((await agent.run(['usage', '--since', 'x'])).code).toBe(2);
}, 240_000);
