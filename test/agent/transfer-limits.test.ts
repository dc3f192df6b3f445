import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from './agent.ts';

const agent = new TestAgent();
beforeAll(async () => {
  agent.site('here', { url: 'local', batch: 'fork' });
  agent.file('big.dat', 'x'.repeat(3 * 1024 * 1024));
  agent.file('make.sh', 'echo once >>runs\nhead -c 3145728 /dev/zero >large.out\nhead -c 200000 /dev/zero >half.out\n');
  await agent.ok('up');
}, 60_000);
afterAll(() => agent.end(), 60_000);

async function settled(cluster: number): Promise<Record<string, unknown>> {
  await agent.ok('wait', '--no-outcome', String(cluster), '--until', 'settled', '--timeout', '60');
  return (await agent.ads(cluster))[0] ?? {};
}

const BASE = 'executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\n';

describe.each([
  ['the pool', 'pool', ''],
  ['a batch site', 'site', 'universe = grid\ngrid_resource = batch fork here\n'],
])('at %s', (_where, id, universe) => {
  it('a job whose inputs are larger than max_transfer_input_mb is held, and runs with a higher limit', async () => {
    const cluster = await agent.submit(
      `${universe}${BASE}arguments = -c true\ntransfer_input_files = big.dat\nmax_transfer_input_mb = 1 + 1\nqueue\n`,
    );
    expect(await settled(cluster)).toMatchObject({
      JobStatus: 5,
      HoldReasonCode: 32,
      HoldReason: expect.stringContaining('3145728 bytes (3.0 MB), more than max_transfer_input_mb = 2') as unknown,
    });
    await agent.ok('edit', String(cluster), 'MaxTransferInputMB=3');
    await agent.ok('release', String(cluster));
    expect(await settled(cluster)).toMatchObject({ JobStatus: 4, ExitCode: 0 });
  }, 90_000);

  it('one whose outputs are larger than max_transfer_output_mb is held before they are placed, and then does not run again', async () => {
    const out = `o-${id}`;
    const cluster = await agent.submit(
      `${universe}${BASE}arguments = make.sh\ntransfer_input_files = make.sh\nmax_transfer_output_mb = 2\noutput = ${out}.txt\n` +
        `transfer_output_remaps = "large.out = ${out}.large; half.out = ${out}.half; runs = ${out}.runs"\nqueue\n`,
    );
    expect(await settled(cluster)).toMatchObject({
      JobStatus: 5,
      HoldReasonCode: 33,
      HoldReason: expect.stringMatching(/ \(3\.2 MB\), more than max_transfer_output_mb = 2: /) as unknown,
    });
    expect(existsSync(join(agent.work, `${out}.half`))).toBe(false);
    await agent.ok('edit', String(cluster), 'MaxTransferOutputMB=-1');
    await agent.ok('release', String(cluster));
    expect(await settled(cluster)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
    expect(agent.read(`${out}.large`)).toHaveLength(3_145_728);
    expect(agent.read(`${out}.runs`)).toBe('once\n');
  }, 90_000);
});
