import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from './agent.ts';

/** From the shell that happens to start the daemons. */
const SECRET = 'planted-7f3a-secret';
const agent = new TestAgent({
  PLANTED: SECRET,
  AWS_SECRET_ACCESS_KEY: SECRET,
  GRYPHUS_PLANTED: 'a daemon may have it',
});

const ENV = '#!/bin/sh\n/usr/bin/env >"$1"\n';
const SEEN = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|PWD|OLDPWD|SHLVL|_)$/;
const SITE = /^(_CONDOR_\w+|GRYPHUS_KEY|BATCH_SYSTEM|OWN)$/;

beforeAll(async () => {
  chmodSync(agent.file('env.sh', ENV), 0o755);
  agent.site('here', { url: 'local', batch: 'fork' });
  await agent.ok('up');
}, 60_000);
afterAll(() => agent.end(), 60_000);

function variables(file: string): Record<string, string> {
  const lines = agent
    .read(file)
    .split('\n')
    .filter((line) => line !== '');
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string]));
}

describe('the environment of the shell that started the daemons', () => {
  it.each([
    ['the local universe', 'universe = local'],
    ['the scheduler universe', 'universe = scheduler'],
    ['the vanilla universe', ''],
    ['a fork site', 'universe = grid\ngrid_resource = batch fork here\nshould_transfer_files = NO'],
  ])('is not seen in a job of %s', async (name, lines) => {
    const file = `${name.replaceAll(' ', '-')}.env`;
    const cluster = await agent.submit(
      `${lines}\nexecutable = env.sh\narguments = ${file}\nenvironment = OWN=mine\nqueue\n`,
    );
    await agent.ok('wait', '--no-outcome', String(cluster));
    const env = variables(file);
    expect(env).toMatchObject({
      OWN: 'mine',
      PATH: expect.stringContaining(process.env['PATH'] ?? ''),
      HOME: agent.env['HOME'],
    });
    expect(Object.keys(env).filter((one) => !SEEN.test(one) && !SITE.test(one))).toEqual([]);
  });

  it("is not seen in a DAG's scripts, and in its nodes only where they ask for it", async () => {
    agent.file('node.sub', 'executable = env.sh\narguments = node.env\nuniverse = local\nqueue\n');
    agent.file('taken.sub', 'executable = env.sh\narguments = taken.env\nuniverse = local\ngetenv = true\nqueue\n');
    agent.file(
      'd.dag',
      `JOB A node.sub\nJOB B taken.sub\nSCRIPT PRE A env.sh pre.env\nSCRIPT POST A env.sh post.env\nENV SET OWN=mine\nENV GET GIVEN\n`,
    );
    const ran = await agent.run(['dag', 'submit', 'd.dag', '--wait'], {
      env: { GIVEN: 'of the submitter', LEFT: SECRET },
    });
    expect(ran.code).toBe(0);
    for (const file of ['pre.env', 'post.env', 'taken.env']) {
      const env = variables(file);
      expect(env).toMatchObject({
        OWN: 'mine',
        GIVEN: 'of the submitter',
        GRYPHUS_HOME: agent.home,
        PATH: process.env['PATH'],
      });
      expect(Object.values(env)).not.toContain(SECRET);
      expect(env).not.toHaveProperty('GRYPHUS_PLANTED');
    }
    for (const file of ['pre.env', 'post.env']) {
      const list =
        /^(XDG_\w+|NODE_EXTRA_CA_CERTS|CONDOR_CONFIG|_CONDOR_\w+|PYTHONPATH|PERL\w*|PEGASUS_\w+|BEARER_TOKEN_FILE|OWN|GIVEN|GRYPHUS_HOME)$/;
      const odd = Object.keys(variables(file)).filter((one) => !SEEN.test(one) && !list.test(one));
      expect(odd).toEqual([]);
    }
    expect(variables('node.env')).not.toHaveProperty('GIVEN');
  });

  it('is in no daemon', () => {
    const daemons = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => ({ pid, command: text(pid, 'cmdline'), environ: text(pid, 'environ') }))
      .filter(({ command, environ }) => command.includes(agent.dir) || environ.includes(`GRYPHUS_HOME=${agent.home}`));
    const named = (part: RegExp) => daemons.filter(({ command }) => part.test(command));
    expect(named(/scheduler\/main\.js/)).toHaveLength(1);
    expect(named(/gridmanager\/main\.js/).length).toBeGreaterThan(0);
    expect(named(/redis-server/).length).toBeGreaterThan(0);
    expect(named(/worker\.mjs/)).toHaveLength(1);
    expect(daemons.filter(({ environ }) => environ.includes(SECRET)).map(({ command }) => command)).toEqual([]);
    expect(named(/scheduler\/main\.js/)[0]?.environ).toContain('GRYPHUS_PLANTED=');
  });
});

function text(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').replaceAll('\0', '\n');
  } catch {
    // It has ended.
    return '';
  }
}
