import { join } from 'node:path';
import { rmSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';

describe('the configuration, changed while the daemons run', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());
  const status = async () =>
    JSON.parse((await agent.run(['status', '--json'])).stdout) as { running: boolean; redis: string };
  const job = 'executable = /bin/true\ntransfer_executable = false\nqueue\n';

  it('is in force at once: a site fixed, a torn one beside it, what jobs ask for, the end of an idle Scheduler', async () => {
    agent.site('there', { url: 'ssh://127.0.0.1:1', batch: 'fork' });
    const grid = `universe = grid\ngrid_resource = batch fork there\n${job}`;
    const cluster = await agent.submit(grid);
    await until('the site to be missed', async () =>
      (await agent.ok('why', String(cluster))).includes('127.0.0.1') ? true : undefined,
    );
    agent.site('torn', { url: 'local', batch: 'fork', more: 'cost = ' });
    agent.site('there', { url: 'local', batch: 'fork' });
    agent.config(
      '[gridmanager]\nretry_min = "1s"\nretry_max = "1s"\n[submit]\ndefault_cpus = 2\ndefault_memory = "1G"\n',
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));

    expect(await agent.ok('site', 'list')).toMatch(/^torn .*torn\.toml, line/m);
    const torn = await agent.run(['submit'], { input: grid.replace('there', 'torn') });
    expect(torn.stderr).toMatch(/torn\.toml, line/);
    const asked = await agent.run(['submit', '--dry-run', '-'], { input: job });
    expect(asked.stdout).toMatch(/^RequestCpus *= *2$/m);
    expect(asked.stdout).toMatch(/^RequestMemory *= *1024$/m);
    rmSync(join(agent.home, 'sites/torn.toml'));

    agent.config('[scheduler]\nidle_exit = "1s"\n');
    await until('the idle Scheduler to end', async () => !(await status()).running || undefined, 60_000);
    await until('its Redis to end', async () => (await status()).redis === 'down' || undefined, 60_000);
    const next = await agent.submit(job);
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(next));
    expect(agent.log('scheduler.log')).toContain('idle_exit');
  }, 180_000);
});
