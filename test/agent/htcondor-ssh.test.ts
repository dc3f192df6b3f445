import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { each, GlideinAgent } from '../glidein/ground.ts';
import { type Condor, skipWithoutCondor, startCondor } from '../sites/condor.ts';
import { letIn } from '../sites/ordinary-user.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { until } from './agent.ts';

describe.skipIf(!SLOW || skipWithoutCondor())('a whole agent over an HTCondor pool', () => {
  let agent: GlideinAgent;
  let condor: Condor;
  let sshd: Sshd;

  beforeAll(async () => {
    agent = new GlideinAgent();
    agent.configure('idle = "120s"');
    condor = await startCondor();
    sshd = await startSshd({ as: condor.user, env: condor.env });
    agent.env['HOME'] = sshd.clientHome;
    // Its jobs write next to the agent's.
    letIn(condor.user, agent.dir, agent.work);
    await agent.ok('up');
  }, 90_000);
  afterAll(async () => {
    await agent?.end();
    await condor?.stop();
    await sshd?.stop();
  });

  it('finds out what the site is, and that it is well', async () => {
    const said = await agent.ok('site', 'add', 'htc', sshd.url);
    expect(said).toContain('condor');
    const tested = await agent.run(['site', 'test', 'htc']);
    expect([tested.code, tested.stdout]).toEqual([0, expect.stringContaining('23.')]);
    expect(await agent.ok('site', 'show', 'htc')).toMatch(/condor/);
  });

  it('knows each end: a status, a signal, its time, removal there', async () => {
    const ends = {
      status: 'exit 3',
      signal: 'kill -9 $$',
      late: 'sleep 600',
      gone: 'sleep 601',
    };
    agent.file(
      'job.sh',
      `#!/bin/sh\ncase $1 in\n${Object.entries(ends)
        .map(([name, does]) => `${name}) ${does} ;;`)
        .join('\n')}\nesac\n`,
      0o755,
    );
    const cluster = await agent.submit(
      [
        'universe = grid',
        'grid_resource = batch condor htc',
        'executable = job.sh',
        'arguments = $(what)',
        'batch_runtime = ifThenElse("$(what)" == "late", 3, 600)',
        `queue what in (${Object.keys(ends).join(' ')})`,
      ].join('\n'),
    );
    const ids = await until('its id there', async () => {
      const [, , , gone] = await agent.ads(cluster);
      return /(\d+\.\d+)"?$/.exec(String(gone?.['GridJobId']))?.[1];
    });
    await until('it to run', async () => (await agent.ads(cluster))[3]?.['JobStatus'] === 2 || undefined);
    condor.admin('condor_rm', ids);
    await until(
      'all to end',
      async () => (await agent.ads(cluster)).every((ad) => [4, 5].includes(Number(ad['JobStatus']))) || undefined,
      90_000,
    );
    expect(await agent.ads(cluster)).toMatchObject([
      { JobStatus: 4, ExitBySignal: false, ExitCode: 3 },
      { JobStatus: 4, ExitBySignal: true, ExitSignal: 9 },
      { JobStatus: 5, HoldReasonCode: 46 },
      { JobStatus: 5, HoldReasonCode: 37, HoldReason: expect.stringContaining('condor_rm') },
    ]);
    await agent.ok('rm', String(cluster));
  }, 180_000);

  it('says why a job waits that no host can run', async () => {
    const cluster = await agent.submit(
      'universe = grid\ngrid_resource = batch condor htc\nexecutable = /bin/true\ntransfer_executable = false\nrequest_cpus = 1000\nqueue',
    );
    const why = () => agent.ok('why', `${cluster}.0`);
    await until('its reason', async () => (await why()).includes('no match found') || undefined, 90_000);
    await agent.ok('rm', String(cluster));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
  }, 180_000);

  it('sends pilots into it, which run plain jobs', async () => {
    await agent.ok('glidein', 'start', '--site', 'htc', '-n', '2', '--walltime', '1h', '--cores', '2');
    await agent.untilHome(2);
    const cluster = await agent.submit(agent.jobs('ledger', 20, 0.1));
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(cluster));
    expect(agent.ledger('ledger')).toEqual(each(20));
    await agent.ok('glidein', 'stop', '--site', 'htc');
    await agent.untilOver();
    await expect.poll(() => condor.run('condor_q', '-af', 'GryphusKey'), { timeout: 60_000 }).toBe('');
  }, 240_000);
});
