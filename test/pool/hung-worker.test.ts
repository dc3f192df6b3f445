import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

describe.skipIf(!SLOW)("this machine's worker that hangs", () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n[gridmanager]\nhung_after = "5s"\n');
    await agent.ok('up');
  }, 120_000);
  afterAll(() => agent.end());

  it('is replaced in a bounded time, and what it ran is found by the next and counts once', async () => {
    const ledger = join(agent.work, 'ledger');
    const go = join(agent.work, 'go');
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n').sort() : []);
    const script = `echo $(Process) >>${ledger}; while [ ! -e ${go} ]; do sleep 0.1; done; echo out`;
    const cluster = await agent.submit(
      `executable = /bin/sh\ntransfer_executable = false\narguments = "-c '${script}'"\noutput = out.$(Process)\nqueue 2\n`,
    );
    await until('both to run', () => lines().length === 2 || undefined);
    const [hung = 0] = processesOf('worker.mjs', agent);
    process.kill(hung, 'SIGSTOP');
    const next = await until(
      'another worker',
      () => processesOf('worker.mjs', agent).find((pid) => pid !== hung),
      45_000,
    );
    expect(existsSync(`/proc/${hung}/stat`) && !processesOf('worker.mjs', agent).includes(hung)).toBe(false);
    expect(agent.log('pool.log')).toContain("this machine's worker hangs");
    writeFileSync(go, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(lines()).toEqual(['0', '1']);
    for (const proc of [0, 1]) expect(agent.read(`out.${proc}`)).toBe('out\n');
    for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
    expect(processesOf('worker.mjs', agent)).toEqual([next]);
  }, 180_000);
});
