import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { saveProxy } from '../../src/credentials/store.ts';
import { type Grid, proxyFor, startGrid } from '../gram/kit.ts';
import { nothingLeft } from '../gram/left.ts';
import { missingPrograms, POLLING } from '../sites/gatekeeper.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

const SKIP = !SLOW || missingPrograms().length > 0;
let grid: Grid;
let agent: TestAgent;

beforeAll(async () => {
  if (SKIP) return;
  grid = await startGrid(POLLING);
  agent = new TestAgent({ X509_CERT_DIR: grid.ca.trust, X509_USER_PROXY: grid.proxyFile });
}, 60_000);
afterAll(async () => {
  await agent?.end();
  await grid?.stop();
}, 60_000);

const starts = (): string[] => {
  const ledger = join(agent.work, 'ledger');
  return existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : [];
};
const submit = (name: string) =>
  agent.submit(`universe = grid
grid_resource = gt2 ${grid.gate.address}/jobmanager-fork
executable = job.sh
arguments = ${name} ${agent.work}
output = out.${name}
queue
`);
const why = (cluster: number) => agent.ok('why', String(cluster));

describe.skipIf(SKIP)('a proxy of ten minutes and a little', () => {
  it('ends its job manager, not its job: with a fresh one both continue, and waiting jobs begin', async () => {
    agent.file(
      'job.sh',
      '#!/bin/sh\necho "$1" >>"$2/ledger"\nwhile ! [ -e "$2/go" ]; do sleep 0.2; done\necho "done $1"\n',
      0o755,
    );
    saveProxy(grid.proxyFile, await proxyFor(grid.jane, { lifetime: 640 }));
    const running = await submit('running');
    await until('the start', () => starts().length === 1 || undefined, 60_000);
    await until('the end of the job manager', () => grid.gate.jobManagers().length === 0 || undefined, 120_000);
    const waiting = await submit('waiting');
    await until('the reason', async () => /proxy/.test(await why(waiting)) || undefined, 60_000);
    expect((await agent.ads(running))[0]).toMatchObject({ JobStatus: 2 });
    agent.file('go', '');
    expect(starts()).toEqual(['running']);

    saveProxy(grid.proxyFile, await proxyFor(grid.jane));
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(running), String(waiting));
    for (const [cluster, name] of [
      [running, 'running'],
      [waiting, 'waiting'],
    ] as const) {
      expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      expect(agent.read(`out.${name}`)).toBe(`done ${name}\n`);
    }
    expect(starts()).toEqual(['running', 'waiting']);
    await nothingLeft(grid, agent);
  }, 400_000);
});
