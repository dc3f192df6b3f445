import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { until } from '../agent/agent.ts';
import { startTarget, type Target } from '../crash/sites.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);
/** Steps of 50 ms and more: five minutes. */
const STEPS = 5000;
/** Of a pilot's allocation, the last minute is for leaving: half a minute for the job. */
const WALLTIME_S = 90;
const LEAVES_S = 60;

describe.skipIf(!SLOW || skipWithoutSlurm() || !existsSync(HELPER))('a job of five minutes', () => {
  let agent: GlideinAgent;
  let target: Target;
  beforeAll(async () => {
    agent = new GlideinAgent();
    agent.config(
      '[scheduler]\nperiodic_interval = "1s"\n[gridmanager]\nretry_max = "1s"\n[pool]\ncpus = 1\n[glidein]\nnode = "own"\ndisk = "10M"\n',
    );
    target = await startTarget('slurm, ssh', agent);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await target?.stop();
  });

  it('ends although none of its workers stays for more than half a minute, and almost no work is lost', async () => {
    const ledger = agent.file('steps', '');
    agent.file(
      'walk.sh',
      `#!/bin/sh\nn=0\nwhile [ $n -lt ${STEPS} ]; do n=$((n + 1)); echo $n; echo $n >>'${ledger}'; sleep 0.05; done\nexit 3\n`,
      0o755,
    );
    const cluster = await agent.submit(
      'executable = walk.sh\nwant_checkpoint = true\nrequest_memory = 20M\noutput = out\nlog = log\nqueue\n',
    );
    const steps = () => readFileSync(ledger, 'utf8').split('\n').length - 1;
    const status = async () => (await agent.ads(cluster))[0]?.['JobStatus'];
    await until('half a minute of work on the first worker', () => steps() > STEPS / 10 || undefined, 120_000);
    await agent.ok('pool', 'off', '--graceful');
    let ordered = 0;
    await until(
      'the end of the job',
      async () => {
        if ((await status()) === 4) return true;
        const pilots = await agent.pilots();
        if (pilots.every(({ left }) => left !== undefined && left < LEAVES_S)) {
          await agent.ok('glidein', 'start', '--site', 'cluster', '-n', '1', '--walltime', `${WALLTIME_S}s`);
          ordered += 1;
        }
        return undefined;
      },
      25 * 60_000,
    );
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 3 });
    expect(agent.read('out')).toBe(Array.from({ length: STEPS }, (_, n) => `${n + 1}\n`).join(''));
    const done = steps();
    const evictions = parseUserLog(agent.read('log')).events.filter(({ type }) => type === 'evicted');
    console.log(`${ordered} pilots, ${evictions.length} evictions, ${done} steps done for ${STEPS}`);
    expect(evictions.length).toBeGreaterThanOrEqual(3);
    expect(Number(ad?.['NumJobStarts'])).toBe(evictions.length + 1);
    expect((done - STEPS) / STEPS).toBeLessThan(0.05);
  }, 1_800_000);
});
