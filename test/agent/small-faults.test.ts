import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { call } from './said.ts';

describe('what a user may get wrong', { timeout: 120_000 }, () => {
  const agent = new TestAgent();
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent.end());

  it('more slots are reserved than there are: a warning says how many', async () => {
    await until('the worker', async () => (await agent.ok('status', '--pool')).includes('slot1@') || undefined);
    const { code, stderr } = await agent.run(['reserve', '-m', '9', '--for', '1h', '--at', '2090-01-01T00:00']);
    expect([code, stderr]).toEqual([
      0,
      'gryphus: warning: the pool can hold 2 of these 9 slots (1 machine with 2 cores in all): the others are kept free only on machines that come.\n',
    ]);
    const fits = await agent.run(['reserve', '-m', '2', '--for', '1h', '--at', '2091-01-01T00:00']);
    expect([fits.code, fits.stderr]).toEqual([0, '']);
  });

  it('the site of a job is removed from the configuration: why says so', async () => {
    agent.site('away', { url: 'ssh://127.0.0.1:1', batch: 'fork' });
    const cluster = await agent.submit(
      'universe = grid\ngrid_resource = batch fork away\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n',
    );
    rmSync(join(agent.home, 'sites/away.toml'));
    const why = await agent.ok('why', `${cluster}.0`);
    expect(why).toContain(
      'There is no site away in the configuration: nothing is done for the job until there is one.',
    );
    expect(why).toContain(`gryphus move ${cluster}.0 SITE`);
  });

  it('--docs with a key describes that key, and a wrong one is refused', async () => {
    const docs = await agent.ok('config', '--docs', 'pool.cpus');
    expect(docs).toMatch(/^## config\.toml\n\n\| key \|.*\n.*\n\| `pool\.cpus` \|/);
    expect(docs.match(/^\| `/gm)).toHaveLength(1);
    expect(await agent.ok('config', '--docs', 'limits.poll_min')).toMatch(/^## sites\/NAME\.toml\n/);
    expect(await agent.run(['config', '--docs', 'pool.cpu'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("There is no key 'pool.cpu'"),
    });
  });

  it('a constraint is wrong: the sentence names what the library calls it', async () => {
    expect((await agent.run(['q', '--constraint', 'x =='])).stderr).toMatch(/^gryphus: constraint: line 1/);
  });

  it('condor_hold -subcode is kept, and -vers is the version', async () => {
    const bin = join(agent.dir, 'bin');
    await agent.ok('compat', 'install', bin);
    const cluster = await agent.submit(
      'executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nqueue\n',
    );
    expect((await call(agent, {}, join(bin, 'condor_hold'), ['-subcode', '7', `${cluster}.0`])).code).toBe(0);
    expect(await agent.ok('q', '-af', 'HoldReasonSubCode', '--constraint', `ClusterId == ${cluster}`)).toBe('7\n');
    for (const command of ['condor_submit_dag', 'condor_hold', 'condor_q'])
      expect((await call(agent, {}, join(bin, command), ['-vers'])).stdout).toMatch(/^\$CondorVersion: /);
  });
});
