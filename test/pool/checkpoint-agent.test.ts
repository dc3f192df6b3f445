import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';

const HELPER = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'native/gryphus-helper');

/** A shell that counts with a child each time, and does not know that it is moved; the ledger tells what it did. */
const COUNTER = `#!/bin/sh
echo start >>"$1"
n=0
while [ $n -lt 1000000 ] && [ ! -e "$1.over" ]; do n=$((n + 1)); echo $n; echo $n >state; echo $n >"$1.at"; sleep 0.02; done
echo "ended at $n"
cp state result
exit 3
`;

describe.skipIf(!existsSync(HELPER))('want_checkpoint in the pool', () => {
  const agent = new TestAgent();

  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    agent.file('counter.sh', COUNTER, 0o755);
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  async function counter(name: string): Promise<{ cluster: number; ledger: string; name: string }> {
    const ledger = join(agent.work, `${name}.ledger`);
    const cluster = await agent.submit(
      `executable = counter.sh\narguments = ${ledger}\nwant_checkpoint = true\noutput = ${name}.out\nlog = ${name}.log\n` +
        `transfer_output_files = result\ntransfer_output_remaps = "result = ${name}.result"\nqueue\n`,
    );
    return { cluster, ledger, name };
  }
  const at = (ledger: string) => (existsSync(`${ledger}.at`) ? Number(readFileSync(`${ledger}.at`, 'utf8')) : 0);
  const reached = (ledger: string, n: number) =>
    until(`count ${n}`, () => (at(ledger) >= n ? at(ledger) : undefined)).catch((thrown: unknown) => {
      throw new Error(`${agent.log('pool.log').slice(-1500)}\n${agent.log('pool-worker.log').slice(-1500)}`, { cause: thrown });
    });
  const evictions = (name: string) =>
    existsSync(join(agent.work, `${name}.log`)) ? parseUserLog(agent.read(`${name}.log`)).events.filter((e) => e.type === 'evicted') : [];

  /** It started once, and its output is what an undisturbed run writes. */
  async function finish({ cluster, ledger, name }: { cluster: number; ledger: string; name: string }): Promise<void> {
    agent.file(`${name}.ledger.over`, '');
    await agent.run(['wait', '--timeout', '60', String(cluster)]);
    const last = at(ledger);
    const lines = Array.from({ length: last }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read(`${name}.out`)).toBe(`${lines}ended at ${last}\n`);
    expect(agent.read(`${name}.result`)).toBe(`${last}\n`);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ ExitCode: 3, NumJobCompletions: 1 });
  }

  it('goes on where it was after each vacate, with its output exactly once', async () => {
    const job = await counter('vacated');
    for (let times = 1; times <= 3; times++) {
      await reached(job.ledger, at(job.ledger) + 20);
      await agent.ok('vacate', String(job.cluster));
      await until(`eviction ${times}`, () => evictions(job.name).length === times || undefined);
    }
    await reached(job.ledger, at(job.ledger) + 20);
    await finish(job);
    expect(readFileSync(job.ledger, 'utf8')).toBe('start\n');
    expect(evictions(job.name).every((event) => event.checkpointed === 1)).toBe(true);
    expect(agent.read(`${job.name}.log`)).toContain('\n\t(1) Job was checkpointed.\n');
    const [ad] = await agent.ads(job.cluster);
    expect(ad).toMatchObject({ NumCkpts: 3, NumJobStarts: 4 });
    expect(String(ad?.['LastCheckpointPlatform'])).toContain('vdso-');
  }, 120_000);
});
