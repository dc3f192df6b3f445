import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

describe('the GPUs of a machine', () => {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 8\ngpus = 4\n');
    agent.file(
      'wait.sh',
      `#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES $GPU_DEVICE_ORDINAL \${_CONDOR_AssignedGPUs-none}"
while [ ! -e ~/go$1 ]; do sleep 0.1; done
`,
      0o755,
    );
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent.end());

  const submit = (name: string, more: string) =>
    agent.submit(`executable = wait.sh\narguments = ${name}\noutput = ${name}.$(Process)\n${more}\n`);
  const states = async (cluster: number) => (await agent.ads(cluster)).map((ad) => ad['JobStatus']);
  const runs = (what: string, cluster: number, count: number) =>
    until(what, async () => (await states(cluster)).filter((one) => one === 2).length === count || undefined);
  const ended = (cluster: number) =>
    until('its end', async () => (await states(cluster)).every((one) => one === 4) || undefined);
  const seen = (name: string, count: number) =>
    Array.from({ length: count }, (_, i) => agent.read(`${name}.${i}`).trim().split(' '));

  it('are each one job’s at a time, through the end of its worker, and no other job sees them', async () => {
    const first = await submit('first', 'request_gpus = 1\nqueue 2');
    const none = await submit('none', 'environment = CUDA_VISIBLE_DEVICES=0\nqueue 1');
    await runs('two of one GPU', first, 2);
    await runs('one without', none, 1);
    killMatching('worker.mjs', agent);
    const second = await submit('second', 'request_gpus = 2\nqueue 1');
    await runs('one of two GPUs', second, 1);
    const third = await submit('third', 'request_gpus = 1\nqueue 1');
    for (const name of ['first', 'none', 'second']) agent.file(`../home/go${name}`, '');
    for (const cluster of [first, none, second]) await ended(cluster);
    await runs('one for which there was no GPU', third, 1);
    agent.file('../home/gothird', '');
    await ended(third);
    const [one, two] = seen('first', 2);
    const [both] = seen('second', 1);
    const given = [one?.[0], two?.[0], ...(both?.[0] ?? '').split(',')];
    expect(new Set(given)).toEqual(new Set(['0', '1', '2', '3']));
    expect(given).toHaveLength(4);
    for (const lists of [one, two, both]) expect(new Set(lists).size).toBe(1);
    expect(seen('none', 1)).toEqual([['10000', '10000', '10000', 'none']]);
    expect(given).toContain(seen('third', 1)[0]?.[0]);
  }, 120_000);

  it('are not seen by jobs that run one after another in one shell, but by those that ask', async () => {
    for (const name of ['many', 'asks']) agent.file(`../home/go${name}`, '');
    const many = await submit('many', 'queue 20');
    const asks = await submit('asks', 'request_gpus = 1\nqueue 20');
    for (const cluster of [many, asks]) await ended(cluster);
    expect(new Set(seen('many', 20).map(([list]) => list))).toEqual(new Set(['10000']));
    for (const [list = '', ...others] of seen('asks', 20)) {
      expect(['0', '1', '2', '3']).toContain(list);
      expect(others).toEqual([list, list, list]);
    }
    const mapped = await agent.ok('map', '--', 'echo $CUDA_VISIBLE_DEVICES', ':::', '1', '2');
    expect(mapped).toBe('10000 1\n10000 2\n');
  }, 120_000);
});
