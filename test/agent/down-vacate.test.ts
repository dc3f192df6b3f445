import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { workerOf } from '../../src/pool/host/pid-files.ts';
import { TestAgent, until } from './agent.ts';
import { daemons } from './everything.ts';
import { processes } from './kill.ts';

const CHECKPOINTS = existsSync(join(import.meta.dirname, `../../dist/native/${process.arch}/gryphus-helper`));

let agent: TestAgent;
beforeAll(() => {
  agent = new TestAgent();
  agent.config('[pool]\ncpus = 4\n');
});
afterAll(() => agent.end());

it('down --vacate ends the worker as well; its jobs keep what they save, and run again with it', async () => {
  const own = (name: string, script: string) =>
    agent.file(name, `#!/bin/sh\necho ${name} >>'${agent.work}/ledger'\n${script}`, 0o755);
  const lines = (text: string) =>
    agent
      .read('ledger')
      .split('\n')
      .filter((line) => line === text).length;
  agent.file('ledger', '');
  own('plain.sh', 'exec sleep 600\n');
  own(
    'save.sh',
    `trap 'echo $$ >saved; exit 3' TERM\n[ ! -e saved ] || echo again >>'${agent.work}/ledger'\nwhile :; do sleep 0.1; done\n`,
  );
  own('stubborn.sh', "trap '' TERM\nwhile :; do sleep 0.1; done\n");
  own('count.sh', `n=0\nwhile :; do n=$((n + 1)); echo $n >'${agent.work}/at'; sleep 0.1; done\n`);
  const job = (name: string, more = '') =>
    agent.submit(
      `executable = ${name}.sh\nrequest_memory = 20M\nrequest_disk = 10M\n${more}log = ${name}.log\nqueue\n`,
    );
  const names = ['plain', 'save', 'stubborn', ...(CHECKPOINTS ? ['count'] : [])];
  const clusters = [
    await job('plain'),
    await job('save', 'when_to_transfer_output = ON_EXIT_OR_EVICT\ntransfer_output_files = saved\n'),
    await job('stubborn'),
    ...(CHECKPOINTS ? [await job('count', 'want_checkpoint = true\n')] : []),
  ];
  const site = await agent.submit(
    `universe = grid\ngrid_resource = batch fork local\nexecutable = plain.sh\nlog = site.log\nqueue\n`,
  );
  await until('all to run', () => agent.read('ledger').split('\n').length === names.length + 2 || undefined);
  await agent.ok('wait', '--until', 'start', '--timeout', '60', ...clusters.map(String), String(site));
  const counted = () => Number(agent.read('at'));
  if (CHECKPOINTS)
    await until('it to count', () => (existsSync(join(agent.work, 'at')) && counted() >= 10) || undefined);

  await agent.ok('down', '--vacate');
  expect(workerOf(join(agent.home, 'state/pool/worker'))).toBeUndefined();
  expect(daemons(agent).filter(({ what }) => !what.includes('stubborn.sh'))).toEqual([]);
  const left = processes(agent).map(({ what }) => what);
  expect(left.filter((what) => /save\.sh|count\.sh/.test(what))).toEqual([]);
  const before = CHECKPOINTS ? counted() : 0;

  await agent.ok('up');
  await until('them to run again', () => (lines('plain.sh') === 3 && lines('save.sh') === 2) || undefined);
  await until('what was saved', () => lines('again') === 1 || undefined);
  await until(
    'all to run',
    () => names.every((name) => agent.read(`${name}.log`).match(/^001 /gm)?.length === 2) || undefined,
  );
  if (CHECKPOINTS) {
    await until('the checkpoint to be used', () => counted() > before || undefined);
    expect(lines('count.sh')).toBe(1);
  }
  for (const name of names) expect(agent.read(`${name}.log`)).not.toMatch(/^(005|012) /m);
  // At a site, nothing was told to end.
  expect((await agent.ads(site))[0]).toMatchObject({ JobStatus: 2, NumJobStarts: 1 });
  await agent.ok('rm', ...clusters.map(String), String(site));
}, 120_000);
