import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

describe.skipIf(!SLOW)('two owners in the pool of a whole agent', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\npriority = "updown"\ngroup_names = ["heavy", "light"]\n');
    // Its work is a counter, which it saves when it is asked to end.
    agent.file(
      'counts.sh',
      `#!/bin/sh
n=0
[ -e count ] && read -r n <count
echo "from $n" >>"$1"
trap 'echo $n >count; exit 85' TERM
while [ "$n" -lt 100 ]; do n=$((n + 1)); sleep 0.25; done
echo "$n" >count
`,
      0o755,
    );
    await agent.ok('up');
  }, 60_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  const userprio = async () =>
    JSON.parse(await agent.ok('userprio', '--json')) as { owner: string; priority: number; factor: number }[];

  it("a light user's job behind six of 25 s on two slots starts within 5 s, and the preempted one goes on from its checkpoint", async () => {
    const log = `${agent.work}/starts`;
    const heavy = await agent.submit(
      `executable = counts.sh\narguments = ${log}\naccounting_group = heavy\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\ntransfer_output_files = count\nqueue 6\n`,
    );
    const starts = () => (existsSync(log) ? agent.read('starts') : '');
    await until('two to run', () => starts().split('\n').length > 2 || undefined);
    const at = Date.now();
    const light = await agent.submit('executable = /bin/sleep\narguments = 1\naccounting_group = light\nqueue\n');
    await agent.ok('wait', '--no-outcome', '--timeout', '20', String(light));
    const seconds = (Date.now() - at) / 1000;
    process.stderr.write(`the light job started after ${(seconds - 1).toFixed(1)} s\n`);
    expect(seconds - 1).toBeLessThan(5);
    await agent.ok('rm', String(heavy), '--constraint', 'JobStatus == 1 && NumJobStarts == 0');
    await until('the preempted job to go on', () => /from [1-9]/.test(starts()) || undefined);
    const [ad] = JSON.parse(
      await agent.ok('q', String(heavy), '--json', '--constraint', 'NumJobStarts > 1'),
    ) as object[];
    expect(ad).toMatchObject({ NumCkpts: 1 });
    await agent.ok('rm', String(heavy));
  }, 90_000);

  it('priorities are set, and survive a restart of the agent', async () => {
    const [name] = (await userprio()).map(({ owner }) => owner).filter((owner) => owner.startsWith('heavy'));
    expect(await agent.ok('userprio', '-setfactor', name ?? '', '5000')).toContain('is now 5000');
    expect(await agent.ok('userprio', '-setprio', name ?? '', '300')).toContain('is now 300');
    await agent.ok('down');
    await agent.ok('up');
    const after = await until('the central manager', async () => {
      const all = await userprio();
      return all.length > 0 ? all : undefined;
    });
    const found = after.find(({ owner }) => owner === name);
    expect(found?.factor).toBe(5000);
    expect(found?.priority).toBeGreaterThan(250);
    expect((await agent.run(['userprio', '--delete', 'nobody'])).code).toBe(1);
    expect((await agent.run(['userprio', '--setfactor', 'x=0.5'])).stderr).toContain('at least 1');
  }, 90_000);
});
