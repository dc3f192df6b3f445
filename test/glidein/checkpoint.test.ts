import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { until } from '../agent/agent.ts';
import { type Kind, startTarget, type Target } from '../crash/sites.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

const KIND: Kind = skipWithoutSlurm() ? 'fork, ssh' : 'slurm, ssh';
const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);

/** It counts until there is a file `$1.over`, and does not know that it is moved. */
const COUNTER = `#!/bin/sh
echo start >>"$1"
n=0
while [ ! -e "$1.over" ]; do n=$((n + 1)); echo $n; echo $n >"$1.at"; sleep 0.1; done
echo "ended at $n"
`;

describe.skipIf(!existsSync(HELPER) || !SLOW)('want_checkpoint on pilots', () => {
  let agent: GlideinAgent;
  let target: Target;
  beforeAll(async () => {
    agent = new GlideinAgent();
    agent.configure('idle = "60s"');
    target = await startTarget(KIND, agent);
    await agent.ok('up');
  }, 90_000);
  afterAll(async () => {
    await agent.end();
    await target?.stop();
  });

  it('goes on from one allocation to the next, with its output exactly once', async () => {
    const site = KIND === 'slurm, ssh' ? 'cluster' : 'there';
    const ledger = join(agent.work, 'ledger');
    agent.file('counter.sh', COUNTER, 0o755);
    const at = () => (existsSync(`${ledger}.at`) ? Number(readFileSync(`${ledger}.at`, 'utf8')) : 0);
    const cluster = await agent.submit(
      `executable = counter.sh\narguments = ${ledger}\nwant_checkpoint = true\noutput = c.out\nlog = c.log\nqueue\n`,
    );
    const evictions = () => parseUserLog(agent.read('c.log')).events.filter((event) => event.type === 'evicted');
    const start = async (walltime: number) => {
      const before = at();
      await agent.ok('glidein', 'start', '--site', site, '-n', '1', '--walltime', `${walltime}s`, '--cores', '1');
      await until('it to run on a pilot', () => at() > before + 5 || undefined, 60_000);
    };
    const evicted = (times: number) =>
      until(`eviction ${times}`, () => evictions().length === times || undefined, 90_000);
    // A worker ends its jobs a minute before its allocation ends.
    for (const times of [1, 2]) {
      await start(110);
      await evicted(times);
      await agent.untilOver();
    }
    await start(1200);
    await agent.ok('vacate', String(cluster));
    await evicted(3);
    const moved = at();
    await until('it to go on', () => at() > moved + 5 || undefined, 60_000);
    agent.file('ledger.over', '');
    await agent.ok('wait', '--timeout', '90', String(cluster));
    expect(evictions().map((event) => event.checkpointed)).toEqual([1, 1, 1]);
    expect(readFileSync(ledger, 'utf8')).toBe('start\n');
    const lines = Array.from({ length: at() }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read('c.out')).toBe(`${lines}ended at ${at()}\n`);
    expect((await agent.ads(cluster))[0]).toMatchObject({ NumCkpts: 3, NumJobStarts: 4 });
    await agent.ok('glidein', 'stop', '--all');
    await agent.untilOver();
  }, 600_000);
});
