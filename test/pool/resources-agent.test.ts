import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';

describe('resources with names of the user’s choice', () => {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 4\n[pool.resources]\nLicenses = 2\n[pool.attributes]\nDepartment = \'"physics"\'\n');
    agent.file(
      'wait.sh',
      '#!/bin/sh\nwhile [ ! -e ~/go$1 ]; do sleep 0.1; done\ngrep -i ^licenses $_CONDOR_MACHINE_AD\n',
      0o755,
    );
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent.end());

  const submit = (more: string) =>
    agent.submit(`executable = wait.sh\narguments = $(Process)\noutput = o$(Process)\n${more}\n`);
  const states = async (cluster: number) => (await agent.ads(cluster)).map((ad) => ad['JobStatus']);
  const slots = async () =>
    JSON.parse((await agent.ok('status', '--pool', '--json')) || '[]') as Record<string, unknown>[];

  it('are advertised, taken by the jobs that ask for them, and given back', async () => {
    const cluster = await submit('request_licenses = 1\nrequirements = Department == "physics"\nqueue 3');
    const free = await submit('queue');
    await until(
      'two to run',
      async () => (await states(cluster)).filter((state) => state === 2).length === 2 || undefined,
    );
    await until('another, which needs none, to run', async () => (await states(free))[0] === 2 || undefined);
    const why = await until('the reason of the third', async () => {
      const said = await agent.ok('why', `${cluster}.2`);
      return said.includes('busy') ? said : undefined;
    });
    expect(why).toMatch(/1 worker: busy with other jobs: the job requests 1 licenses \(0 free\)/);
    const ads = await slots();
    expect(ads.find((ad) => ad['PartitionableSlot'])).toMatchObject({ Licenses: 0, TotalLicenses: 2 });
    const taken = ads.filter((ad) => ad['DynamicSlot']).map((ad) => Number(ad['Licenses']));
    expect(taken.sort((one, other) => one - other)).toEqual([0, 1, 1]);
    for (const n of [0, 1, 2]) agent.file(`../home/go${n}`, '');
    await until('all to end', async () => (await states(cluster)).every((state) => state === 4) || undefined);
    await until('them to be free', async () => (await slots())[0]?.['Licenses'] === 2 || undefined);
    expect(agent.read('o1')).toBe('Licenses = 1\n');
  }, 90_000);

  it('are explained where there are too few, and follow the settings', async () => {
    const cluster = await submit('request_licenses = 3\nqueue');
    await until(
      'the reason',
      async () =>
        (await agent.ok('why', `${cluster}.0`)).includes('too small: the job requests 3 licenses (2 in all)') ||
        undefined,
    );
    agent.config('[pool]\ncpus = 4\n[pool.resources]\nLicenses = 3\n');
    await until('it to end', async () => (await states(cluster))[0] === 4 || undefined);
    const none = await submit('request_dongles = 1\nqueue');
    await until('the reason', async () => /TARGET\.dongles/i.test(await agent.ok('why', `${none}.0`)) || undefined);
  }, 60_000);
});
