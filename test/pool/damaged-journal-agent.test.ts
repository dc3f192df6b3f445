import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

describe.skipIf(!SLOW)('a damaged journal of the pool', () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 1\n[gridmanager]\nretry_min = "1s"\nretry_max = "2s"\nrestart_max = "5s"\n');
    await agent.ok('up');
  }, 120_000);
  afterAll(() => agent.end());

  it('stops the pool and says which line and what to do; then its jobs are held, not lost, and run when released', async () => {
    const go = join(agent.work, 'go');
    const cluster = await agent.submit(
      `executable = /bin/sh\ntransfer_executable = false\narguments = "-c 'while [ ! -e ${go} ]; do sleep 0.1; done'"\nqueue\n`,
    );
    const state = async () => (await agent.ads(cluster))[0]?.['JobStatus'];
    await until('it to run', async () => (await state()) === 2 || undefined);
    const journal = join(agent.home, 'state/pool/journal');
    await agent.submit('executable = /bin/true\nqueue\n');
    await until('a later write', () => readFileSync(journal, 'utf8').includes('.2.0.1"') || undefined);
    const lines = readFileSync(journal, 'utf8').split('\n');
    const at = lines.findIndex((line) => line.includes('"r":"p"'));
    writeFileSync(journal, lines.with(at, '{').join('\n'));
    const [centralManager = 0] = processesOf('central-manager-main', agent);
    process.kill(centralManager, 'SIGKILL');
    const why = await until('the reason', async () => {
      const said = await agent.ok('why', String(cluster));
      return said.includes('is damaged') ? said : undefined;
    });
    expect(why).toContain(`Line ${at + 1} of the pool's journal ${journal} is damaged`);
    expect(why).toContain('move it elsewhere: the jobs that were in the pool are then held');

    renameSync(journal, `${journal}.damaged`);
    await until('it to be held', async () => (await state()) === 5 || undefined, 60_000);
    writeFileSync(go, '');
    await agent.ok('release', String(cluster));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(await agent.ads(cluster)).toMatchObject([{ ExitCode: 0, JobStatus: 4 }]);
  }, 180_000);
});
