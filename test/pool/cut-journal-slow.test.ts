import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

describe.skipIf(!SLOW)('the journal of the pool, while a worker runs jobs', () => {
  let agent: TestAgent;
  beforeEach(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n[gridmanager]\nretry_min = "1s"\nretry_max = "2s"\nrestart_max = "5s"\n');
    await agent.ok('up');
  }, 120_000);
  afterEach(() => agent.end());

  it.each<readonly [string, (bytes: Buffer, at: number) => Buffer]>([
    ['was cut in a record', (bytes, at) => bytes.subarray(0, at)],
    ['was cut to nothing', () => Buffer.alloc(0)],
  ])(
    '%s: nothing runs twice without a release, and all jobs end',
    async (_, damage) => {
      const script = `echo $(Process) >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.1; done`;
      const cluster = await agent.submit(
        `executable = /bin/sh\ntransfer_executable = false\nrequest_memory = 20M\narguments = "-c '${script}'"\nqueue 2\n`,
      );
      const started = () =>
        existsSync(join(agent.work, 'ledger')) ? agent.read('ledger').trim().split('\n').toSorted() : [];
      await until('both to run', () => started().length === 2 || undefined);
      await agent.ok('wait', '--until', 'start', '--timeout', '60', String(cluster));
      const journal = join(agent.home, 'state/pool/journal');
      const bytes = readFileSync(journal);
      writeFileSync(journal, damage(bytes, bytes.indexOf('\n', bytes.indexOf('\n') + 1) + 2));
      const [centralManager = 0] = processesOf('central-manager-main', agent);
      process.kill(centralManager, 'SIGKILL');
      const states = async () => (await agent.ads(cluster)).map((ad) => ad['JobStatus']);
      await until('both to be held', async () => (await states()).every((is) => is === 5) || undefined);
      for (const ad of await agent.ads(cluster))
        expect(ad['HoldReason']).toBe(
          'Site pool has no record of the job any more; whether it ran there cannot be known.',
        );
      expect(started()).toEqual(['0', '1']);
      agent.file('go', '');
      await agent.ok('release', String(cluster));
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
      for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
      expect(started()).toEqual(['0', '0', '1', '1']);
    },
    150_000,
  );
});
