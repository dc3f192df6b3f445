import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Sites } from './hostile.ts';

let sites: Sites;
beforeAll(async () => {
  sites = await Sites.open();
  sites.fair('there');
  await sites.agent.ok('up');
}, 120_000);
afterAll(() => sites.close());

it('what any job writes into the mark of its site changes no number, and holds no job', async () => {
  const { agent } = sites;
  const first = await sites.submit('there', 'true');
  await agent.ok('wait', '--no-outcome', '--timeout', '120', String(first));
  const file = join(sites.root('there') ?? '', 'mark');
  const [mark = ''] = readFileSync(file, 'utf8').split('\n');
  const far = mark.replace(/^\d+:([^:]+):\d+:\d+/, '999:$1:999999999999999:999999999999999');
  expect(far).not.toBe(mark);
  let last = first;
  for (const forged of [far, '1:run:999999999999999:999999999999999']) {
    await agent.ok('down');
    writeFileSync(file, `${forged}\n`);
    await agent.ok('up');
    const cluster = await sites.submit('there', 'echo ran', `output = ${last}.out`);
    expect(cluster).toBe(last + 1);
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(cluster));
    expect(agent.read(`${last}.out`)).toBe('ran\n');
    last = cluster;
  }
}, 400_000);
