import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';

/** Plain jobs go to the pool; an ordinary run also plays one test at the fork site. */
describe.each([
  { site: 'pool', noted: 'memory', all: true },
  { site: 'local', noted: 'run.lock.1/memory', all: SLOW },
])('the life of jobs as a user sees it, in $site', ({ site, noted, all }) => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config(`[submit]\ndefault_site = "${site}"\n[pool]\ncpus = 8\n[scheduler]\nperiodic_interval = "1s"\n`);
    agent.site('local', { url: 'local', batch: 'fork', more: '[limits]\nrunning = 8\n' });
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  const eventsIn = (name: string) => parseUserLog(agent.read(name)).events;
  /** Whether its memory was measured depends on how long the job took. */
  const typesIn = (name: string) => eventsIn(name).flatMap(({ type }) => (type === 'image-size' ? [] : [type]));
  const state = (cluster: number) => agent.ads(cluster).then(([ad]) => ad?.['GryphusState']);

  it.skipIf(!all)('tells every start of a job that its policy runs again, however short it was', async () => {
    const cluster = await agent.submit(
      `executable = /bin/sh\narguments = "-c 'exit 5'"\nmax_retries = 2\nlog = retries.log\nqueue\n`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const types = typesIn('retries.log');
    // HTCondor's recorded sequence, without its image sizes.
    expect(types).toEqual(['submit', 'execute', 'requeued', 'execute', 'requeued', 'execute', 'terminated']);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ NumJobStarts: 3, NumJobCompletions: 3, ExitCode: 5 });
  });

  it.skipIf(!all)(
    'looks at the policy that one job alone has, by a macro or by an edit',
    async () => {
      const job = 'executable = /bin/sleep\narguments = 300\ntransfer_executable = false\nhold = true\n';
      const macro = await agent.submit(`${job}periodic_remove = $(Process) == 1\nqueue 2\n`);
      await agent.ok('wait', '--no-outcome', '--timeout', '120', `${macro}.1`);
      const edited = await agent.submit(`${job}queue 2\n`);
      await agent.ok('edit', `${edited}.1`, 'PeriodicRemove', 'JobStatus == 5');
      await agent.ok('wait', '--no-outcome', '--timeout', '120', `${edited}.1`);
      const left = JSON.parse(await agent.ok('q', '--json', '--attributes', 'ProcId', String(macro), String(edited)));
      expect(left).toEqual([{ ProcId: 0 }, { ProcId: 0 }]);
      await agent.ok('rm', String(macro), String(edited));
    },
    90_000,
  );

  it.skipIf(!all)(
    'says nothing of an eviction when the policy of the job itself ends its run, as HTCondor',
    async () => {
      const cluster = await agent.submit(
        [
          'executable = /bin/sleep',
          'arguments = 300',
          'log = periodic.log',
          'periodic_hold = JobStatus == 2 && NumJobStarts == 1',
          'periodic_hold_reason = "ran too long"',
          'periodic_hold_subcode = 7',
          'periodic_release = HoldReasonCode == 3',
          'periodic_remove = JobStatus == 2 && NumJobStarts == 2',
          'queue',
        ].join('\n'),
      );
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
      const events = eventsIn('periodic.log');
      expect(events.map((event) => event.type)).toEqual([
        'submit',
        'execute',
        'held',
        'released',
        'execute',
        'aborted',
      ]);
      expect(events[2]).toMatchObject({ reason: 'ran too long', code: 3, subcode: 7 });
      const [ad] = await agent.ads(cluster);
      expect(ad).toMatchObject({ LastHoldReason: 'ran too long', LastHoldReasonCode: 3, NumHolds: 1 });
    },
  );

  it('gives a job its ads, and tells of its files and its memory', async () => {
    agent.file('in put', 'input\n');
    agent.file(
      'job.sh',
      `#!/bin/sh\ncat "in put"; grep "^MyText\\|^ProcId\\|^JobStatus " "$_CONDOR_JOB_AD"; grep ^Cpus "$_CONDOR_MACHINE_AD"\nuntil [ -s ../${noted} ]; do sleep 0.1; done\necho made >made\n`,
      0o755,
    );
    const cluster = await agent.submit(
      'executable = job.sh\ntransfer_input_files = "in put"\n+MyText = "a \\"b\\" ü"\nrequest_cpus = 1\noutput = ads.out\nlog = ads.log\nqueue\n',
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(agent.read('ads.out')).toBe('input\nJobStatus = 2\nMyText = "a \\"b\\" ü"\nProcId = 0\nCpus = 1\n');
    expect(eventsIn('ads.log').map(({ type }) => type)).toEqual([
      'submit',
      'file-transfer',
      'file-transfer',
      'execute',
      'image-size',
      'file-transfer',
      'file-transfer',
      'terminated',
    ]);
    const [ad] = await agent.ads(cluster);
    expect(ad?.['ResidentSetSize']).toBeGreaterThan(100);
    expect(ad?.['MemoryUsage']).toBeGreaterThanOrEqual(1);
    expect(agent.read('made')).toBe('made\n');
    expect(existsSync(join(agent.work, '.job.ad'))).toBe(false);
  });

  it.skipIf(!all)('keeps who wanted it, and the time that a stopped run took', async () => {
    const cluster = await agent.submit('executable = /bin/sleep\narguments = 300\nlog = rm.log\nqueue\n');
    await until('it to run for two seconds', async () => {
      const [ad] = await agent.ads(cluster);
      const since = Number(ad?.['JobCurrentStartDate'] ?? Number.NaN);
      return Date.now() / 1000 - since > 2.5 || undefined;
    });
    await agent.ok('rm', '--reason', 'no longer needed', String(cluster));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const events = eventsIn('rm.log');
    expect(events.map((event) => event.type)).toEqual(['submit', 'execute', 'evicted', 'aborted']);
    expect(events[3]).toMatchObject({ reason: expect.stringMatching(/^no longer needed \(by user \S+\)$/) });
    const [ad] = await agent.ads(cluster);
    expect(ad?.['RemoteWallClockTime']).toBeGreaterThanOrEqual(2);
  });

  it.skipIf(!all)('follows the output from one attempt into the next', async () => {
    const cluster = await agent.submit(
      `executable = /bin/sh\narguments = "-c 'echo try; sleep 4; exit 1'"\nmax_retries = 1\noutput = tries\nqueue\n`,
    );
    expect(await agent.ok('tail', '-f', `${cluster}.0`)).toBe('try\ntry\n');
  });

  it.skipIf(!all)(
    'continues at the other sites when one is no longer configured; its jobs can be abandoned',
    async () => {
      agent.site('gone', { url: 'local', batch: 'fork' });
      const lost = await agent.submit(
        'universe = grid\ngrid_resource = batch fork gone\nexecutable = /bin/sleep\narguments = 300\nqueue\n',
      );
      await until('it to run', async () => (await state(lost)) === 'running' || undefined);
      rmSync(join(agent.home, 'sites/gone.toml'));
      await agent.ok('down');
      await agent.ok('up');
      const other = await agent.submit('executable = /bin/true\nqueue\n');
      await agent.ok('wait', '--no-outcome', '--timeout', '120', String(other));
      expect(await agent.ok('why', String(lost))).toContain("There is no site 'gone'");
      expect(await agent.ok('rm', '--force', `${lost}.0`)).toContain('removed locally (remote state unknown)');
      await agent.ok('wait', '--no-outcome', '--timeout', '120', String(lost));
    },
  );
});
