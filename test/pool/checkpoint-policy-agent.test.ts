import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);

const COUNTER = `#!/bin/sh
echo start >>"$1"
n=0
while [ ! -e "$1.over" ]; do n=$((n + 1)); echo $n; echo $n >"$1.at"; sleep 0.05; done
echo "ended at $n"
`;

describe.skipIf(!existsSync(HELPER))("a machine's PERIODIC_CHECKPOINT", () => {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config(
      '[pool]\ncpus = 1\npolling_interval = "1s"\nperiodic_checkpoint = "LastCkpt > 4"\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n',
    );
    agent.file('counter.sh', COUNTER, 0o755);
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  it('checkpoints a job again and again, also after its worker was killed, and the job goes on', async () => {
    const ledger = join(agent.work, 'ledger');
    const cluster = await agent.submit(
      `executable = counter.sh\narguments = ${ledger}\nwant_checkpoint = true\noutput = c.out\nlog = c.log\nqueue\n`,
    );
    const checkpoints = () =>
      existsSync(join(agent.work, 'c.log'))
        ? parseUserLog(agent.read('c.log')).events.filter(({ type }) => type === 'checkpointed').length
        : 0;
    const more = (count: number) => {
      const least = checkpoints() + count;
      return until(`checkpoint ${least}`, () => checkpoints() >= least || undefined, 120_000).catch(
        (thrown: unknown) => {
          throw new Error(agent.log('pool-worker.log').slice(-3000), { cause: thrown });
        },
      );
    };
    await more(2);
    killMatching('worker.mjs', agent);
    await agent.ok('up');
    await more(2);
    agent.file('ledger.over', '');
    await agent.ok('wait', '--timeout', '90', String(cluster));
    const last = Number(readFileSync(`${ledger}.at`, 'utf8'));
    const lines = Array.from({ length: last }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read('c.out')).toBe(`${lines}ended at ${last}\n`);
    expect(readFileSync(ledger, 'utf8')).toBe('start\n');
    expect((await agent.ads(cluster))[0]).toMatchObject({ NumJobStarts: 1, NumCkpts: checkpoints() });
  }, 300_000);
});
