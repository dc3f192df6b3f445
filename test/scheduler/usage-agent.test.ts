import { afterAll, beforeAll, expect, it } from 'vitest';
import type { UsageReport } from '../../src/client/usage.ts';
import { TestAgent } from '../agent/agent.ts';
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

it('what jobs used is what the history says of them, also after a restart', async () => {
  const job = (batch: string, jobs: number) =>
    `executable = /bin/sleep\narguments = 0.7\nrequest_cpus = 2\nbatch_name = ${batch}\nqueue ${jobs}\n`;
  const clusters = [await agent.submit(job('one', 1)), await agent.submit(job('two', 2))].map(String);
  await agent.ok('wait', '--timeout', '60', ...clusters);
  const usage = async () => JSON.parse(await agent.ok('usage', '--by', 'batch', '--json')) as UsageReport;
  const ads = JSON.parse(await agent.ok('history', '--json')) as { RemoteWallClockTime: number; RequestCpus: number }[];
  expect(ads).toHaveLength(3);
  const hours = ads.reduce((sum, ad) => sum + ad.RemoteWallClockTime * ad.RequestCpus, 0) / 3600;
  const before = await usage();
  expect(before.all.jobs).toBe(3);
  expect(Math.abs(before.all.capacityHours / hours - 1)).toBeLessThan(0.001);
  await agent.ok('down');
  const after = await usage().catch(async () => {
    await agent.ok('up');
    return usage();
  });
  expect(after.all).toMatchObject({ jobs: 3, capacityHours: before.all.capacityHours });
  expect(after.by.map(({ name, jobs }) => `${name} ${jobs}`).sort()).toEqual(['one 1', 'two 2']);
  expect(after.local.map(({ daemon }) => daemon)).toEqual(expect.arrayContaining(['scheduler', 'redis-server']));
  expect(after.all.leverage).toBeGreaterThan(0);
  expect(await agent.ok('usage')).toContain('Total');
  expect((await agent.run(['usage', '--since', 'x'])).code).toBe(2);
}, 90_000);
