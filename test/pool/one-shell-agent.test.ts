import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

const JOBS = 12;

/** On one slot, jobs of a cluster that differ only in their arguments run in one shell; none may notice. */
describe('jobs that one shell runs one after another', () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 1\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  const run = async (script: string, more = '', jobs = JOBS): Promise<number> => {
    agent.file('job.sh', `#!/bin/sh\n${script}\n`, 0o755);
    const cluster = await agent.submit(
      `executable = job.sh\narguments = $(Process)\noutput = out.$(Process)\nerror = err.$(Process)\n${more}\nqueue ${jobs}\n`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    return cluster;
  };
  const outputs = () => Array.from({ length: JOBS }, (_, i) => agent.read(`out.${i}`).trim());

  it('are run in one indeed', async () => {
    await run('echo $PPID; cat /proc/$PPID/status | grep ^PPid');
    // The program's parent is its waiter, whose parent is the shell.
    const shells = outputs().map((text) => text.split('PPid:')[1]?.trim());
    // After a job that took its time there is another shell: on a busy machine, any may.
    expect(new Set(shells).size).toBeLessThan(JOBS / 2);
  }, 90_000);

  it('find each its own ad and an empty scratch directory, whatever the one before did to them', async () => {
    await run(
      [
        'grep "^ProcId = " "$_CONDOR_JOB_AD"',
        'ls -A "$_CONDOR_SCRATCH_DIR" | tr "\\n" " "',
        'grep -c "^Name = " "$_CONDOR_MACHINE_AD"',
        'mkdir "$_CONDOR_SCRATCH_DIR/left behind"; echo x >"$_CONDOR_SCRATCH_DIR/left behind/\\$(x)"; echo longer longer >>"$_CONDOR_JOB_AD"',
        'case $1 in 3) rm "$_CONDOR_JOB_AD" ;; 6) rm -rf "$_CONDOR_SCRATCH_DIR" ;; 9) rm "$_CONDOR_MACHINE_AD"; mkdir "$_CONDOR_SCRATCH_DIR/deep" ;; esac',
      ].join('\n'),
    );
    for (const [i, text] of outputs().entries()) expect(text).toBe(`ProcId = ${i}\n.job.ad .machine.ad 1`);
  }, 90_000);

  it('end each with its own status, streams and usage', async () => {
    const cluster = await run('echo "out $1"; echo "err $1" >&2; case $1 in 4) kill -9 $$ ;; esac; exit $1');
    const ads = await agent.ads(cluster);
    for (const ad of ads) {
      const proc = Number(ad['ProcId']);
      expect(ad).toMatchObject(proc === 4 ? { ExitBySignal: true, ExitSignal: 9 } : { ExitCode: proc });
      expect([agent.read(`out.${proc}`), agent.read(`err.${proc}`)]).toEqual([`out ${proc}\n`, `err ${proc}\n`]);
    }
    expect(ads).toHaveLength(JOBS);
    const failed = await agent.ok(
      'history',
      String(cluster),
      '--failed',
      '--constraint',
      'ProcId > 2',
      '-af',
      'ProcId',
    );
    expect(
      failed
        .trim()
        .split('\n')
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(await agent.ok('history', String(cluster), '--failed', '-af', 'ProcId')).not.toMatch(/^0$/m);
  }, 90_000);

  it('stand each in the directory that has the name of theirs now', async () => {
    mkdirSync(join(agent.work, 'place'));
    agent.file('place/here', 'old');
    agent.file(
      'job.sh',
      '#!/bin/sh\ncat here; if [ "$1" = 5 ]; then cd ..; rm -r place; mkdir place; echo new >place/here; fi\n',
      0o755,
    );
    const cluster = await agent.submit(
      `executable = ${agent.work}/job.sh\ninitialdir = place\narguments = $(Process)\noutput = ${agent.work}/at.$(Process)\nqueue ${JOBS}\n`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const seen = Array.from({ length: JOBS }, (_, i) => agent.read(`at.${i}`).trim());
    expect(seen).toEqual(seen.map((_, i) => (i <= 5 ? 'old' : 'new')));
  }, 90_000);

  it('that take their time are in a control group where there are such, and survive the death of their worker', async () => {
    const grouped = (await agent.ok('status', '--pool', '-af', 'GryphusCgroups')).trim() !== 'undefined';
    agent.file('ledger', '');
    agent.file(
      'job.sh',
      '#!/bin/sh\necho $1 >>ledger\n[ $1 -lt 2 ] && exit 0\n[ $1 -gt 2 ] && exit 0\nuntil [ -e go ]; do sleep 0.1; done\ncat /proc/self/cgroup\n',
      0o755,
    );
    const cluster = await agent.submit(
      `executable = job.sh\narguments = $(Process)\noutput = slow.$(Process)\nqueue 4\n`,
    );
    await until('the slow one', () => agent.read('ledger').includes('2') || undefined);
    await until(
      'it to be seen',
      async () => (await agent.ads(cluster)).some((ad) => ad['JobStatus'] === 2) || undefined,
    );
    killMatching('worker.mjs', agent);
    agent.file('go', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(agent.read('ledger').trim().split('\n').sort()).toEqual(['0', '1', '2', '3']);
    if (grouped) expect(agent.read('slow.2')).toMatch(new RegExp(`\\.${cluster}\\.2\\.1$`, 'm'));
  }, 120_000);
});
