import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Grid, startGrid } from '../gram/kit.ts';
import { nothingLeft } from '../gram/left.ts';
import { missingPrograms, POLLING } from '../sites/gatekeeper.ts';
import { ended, waitUntil } from '../sites/ports.ts';
import { TestAgent, until } from './agent.ts';
import { processesOf } from './kill.ts';

const MISSING = missingPrograms();
let grid: Grid;
let agent: TestAgent;

beforeAll(async () => {
  if (MISSING.length > 0) return;
  grid = await startGrid(POLLING);
  agent = new TestAgent({ X509_CERT_DIR: grid.ca.trust, X509_USER_PROXY: grid.proxyFile });
}, 60_000);
afterAll(async () => {
  await agent?.end();
  await grid?.stop();
}, 60_000);

const resource = () => `gt2 ${grid.gate.address}/jobmanager-fork`;
const description = (more: string) => `universe = grid
grid_resource = ${resource()}
${more}
queue
`;
const one = async (cluster: number) => (await agent.ads(cluster))[0] ?? {};
const is = (cluster: number, status: number, ms = 120_000) =>
  until(
    `job ${cluster} to be ${status}`,
    async () => ((await one(cluster))['JobStatus'] === status ? true : undefined),
    ms,
  );
const gridManagers = () => processesOf('gridmanager/main.js', agent);

describe.skipIf(MISSING.length > 0)('jobs at a GRAM service', () => {
  it('go there and come home with their files and their exit code', async () => {
    agent.file('in put', 'from data\n');
    agent.file('prog.sh', '#!/bin/sh\ncat "in put"; echo "$1" >"an out"; echo bad >&2; exit 3\n', 0o755);
    const cluster = await agent.submit(
      description(`executable = prog.sh
arguments = "'two words'"
transfer_input_files = in put
output = out
error = err
log = log
`),
    );
    await agent.ok('wait', '--no-outcome', String(cluster));
    const ad = await one(cluster);
    expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 3, NumJobStarts: 1, x509userproxysubject: grid.jane.dn });
    expect(ad['GridJobId']).toMatch(/^gt2 localhost:\d+\/jobmanager-fork https:\/\//);
    expect([agent.read('out'), agent.read('err'), agent.read('an out')]).toEqual([
      'from data\n',
      'bad\n',
      'two words\n',
    ]);
    expect(agent.read('log')).toMatch(/^000 [^]*^001 [^]*^005 /m);
    await nothingLeft(grid, agent);
  }, 240_000);

  it('each run once when GridManager, job manager and gatekeeper are killed', async () => {
    agent.file(
      'once.sh',
      '#!/bin/sh\necho "$1" >>"$2/ledger"\nwhile ! [ -e "$2/go$1" ]; do sleep 0.2; done\necho "done $1"\n',
      0o755,
    );
    const job = (n: number) =>
      description(`executable = once.sh\narguments = ${n} ${agent.work}\noutput = once${n}.out\nlog = once.log`);
    const clusters: number[] = [];
    for (const n of [0, 1, 2]) clusters.push(await agent.submit(job(n)));
    for (const cluster of clusters) await is(cluster, 2);
    // While the job runs: the agent's half.
    for (const pid of gridManagers()) process.kill(pid, 'SIGKILL');
    await until('another GridManager', () => gridManagers().length > 0 || undefined);
    agent.file('go0', '');
    await is(clusters[0] ?? 0, 4);
    // The site's half, and its gatekeeper.
    const [manager = 0] = grid.gate.jobManagers();
    expect(manager).toBeGreaterThan(1);
    await grid.gate.kill();
    process.kill(manager, 'SIGKILL');
    await waitUntil('the job manager to be gone', () => ended(manager));
    agent.file('go1', '');
    await grid.gate.start();
    await is(clusters[1] ?? 0, 4);
    // All of it, while the results are being transferred.
    agent.file('go2', '');
    for (const pid of gridManagers()) process.kill(pid, 'SIGKILL');
    for (const pid of grid.gate.jobManagers()) process.kill(pid, 'SIGKILL');
    await is(clusters[2] ?? 0, 4);
    expect(agent.read('ledger').split('\n').sort()).toEqual(['', '0', '1', '2']);
    expect([0, 1, 2].map((n) => agent.read(`once${n}.out`))).toEqual(['done 0\n', 'done 1\n', 'done 2\n']);
    await nothingLeft(grid, agent);
  }, 400_000);

  it('are withdrawn, and leave nothing', async () => {
    const cluster = await agent.submit(
      description('executable = /bin/sleep\narguments = 600\ntransfer_executable = false'),
    );
    await is(cluster, 2);
    expect(await agent.ok('status')).toMatch(/gt2:localhost:\d+:jobmanager-fork/);
    await agent.ok('rm', String(cluster));
    await nothingLeft(grid, agent);
    await is(cluster, 3);
  }, 60_000);

  it('are where `site test` and `site audit` look for them', async () => {
    await agent.ok('site', 'add', 'ce', `gt2://${grid.gate.address}/jobmanager-fork`);
    const tested = await agent.ok('site', 'test', 'ce');
    expect(tested).toMatch(/job manager.*jobmanager-fork/);
    expect(tested).toMatch(/GASS server.*https:/);
    expect(await agent.ok('site', 'audit', 'ce')).toContain('ce and the queue agree');
    const message = 'executable = /bin/sleep\narguments = 600\ntransfer_executable = false';
    const cluster = await agent.submit(description(message).replace(resource(), 'gt2 ce'));
    await is(cluster, 2);
    // Beside the GridManager that manages the job.
    expect(await agent.ok('site', 'audit', 'ce')).toContain('ce and the queue agree');
    // It leaves the queue while the site cannot be told.
    await grid.gate.kill();
    for (const pid of grid.gate.jobManagers()) process.kill(pid, 'SIGKILL');
    expect((await agent.run(['site', 'test', 'ce'])).code).toBe(1);
    await agent.ok('rm', '--forcex', String(cluster));
    await grid.gate.start();
    const { stdout } = await agent.run(['site', 'audit', 'ce']);
    expect(stdout).toContain('only at the site');
    expect(await agent.ok('site', 'audit', 'ce', '--clean', 'all')).toContain('cleaned');
    expect(await agent.ok('site', 'audit', 'ce')).toContain('ce and the queue agree');
    await nothingLeft(grid, agent);
  }, 180_000);

  it('are held with one sentence where the site will not have them', async () => {
    const nowhere = await agent.submit(
      description('executable = /bin/true\ntransfer_executable = false').replace(
        'jobmanager-fork',
        'jobmanager-nosuch',
      ),
    );
    const badRsl = await agent.submit(
      description('executable = /bin/true\ntransfer_executable = false\nbatch_extra_submit_args = (nonsense'),
    );
    await is(nowhere, 5);
    await is(badRsl, 5);
    expect((await one(nowhere))['HoldReason']).toContain('no service jobmanager-nosuch');
    expect((await one(badRsl))['HoldReason']).toMatch(/RSL/);
    await agent.ok('rm', String(nowhere), String(badRsl));
    const { code, stderr } = await agent.run(['submit', 'job.sub'], { env: { X509_USER_PROXY: '/no/such/proxy' } });
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining('/no/such/proxy')]);
  }, 90_000);
});
