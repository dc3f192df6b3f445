import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

describe.skipIf(!SLOW)('a parallel job on the pilots of two sites', { timeout: 240_000 }, () => {
  const agent = new GlideinAgent();
  beforeAll(async () => {
    agent.configure('idle = "120s"');
    for (const name of ['one', 'two'])
      agent.site(name, { url: 'local', batch: 'fork', more: `scratch = "${agent.dir}/${name}"\n` });
    await agent.ok('up');
    for (const name of ['one', 'two'])
      await agent.ok('glidein', 'start', '--site', name, '-n', '1', '--walltime', '20m', '--cores', '2');
    await agent.untilHome(2);
  }, 180_000);
  afterAll(() => agent.end());

  /** On which sites the nodes of such a job ran. */
  async function sites(count: number): Promise<string[]> {
    agent.file(
      'where.sh',
      `#!/bin/sh
sed -n 's/^GryphusSite = "\\(.*\\)"/\\1/p' "$_CONDOR_MACHINE_AD" >"site.$_CONDOR_PROCNO"
[ "$_CONDOR_PROCNO" = 0 ] || exec sleep 100
for node in $(seq 0 $((_CONDOR_NPROCS - 1))); do "$GRYPHUS_RSH" "node$node" 'cat "$_CONDOR_SCRATCH_DIR/site.$_CONDOR_PROCNO"'; done
`,
      0o755,
    );
    const cluster = await agent.submit(
      `universe = parallel\nrequest_memory = 50\nrequest_disk = 1000\nshould_transfer_files = yes\nexecutable = where.sh
      machine_count = ${count}\noutput = where.${count}.$(Node)\nerror = where.err.$(Node)\nqueue`,
    );
    await agent.ok('wait', '--timeout', '180', String(cluster));
    return agent.read(`where.${count}.0`).trim().split('\n').sort();
  }

  it('is within one of them if that has enough, and spans both if not', async () => {
    const [first, second] = await sites(2);
    expect(first).toBe(second);
    const all = await sites(4);
    expect(all).toEqual(['one', 'one', 'two', 'two']);
  });
});
