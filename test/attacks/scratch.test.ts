import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { ordinaryUser } from '../sites/ordinary-user.ts';
import { Sites } from './hostile.ts';

let sites: Sites;
let shared: string;
beforeAll(async () => {
  sites = await Sites.open();
  shared = join(sites.sshd.home, 'shared');
  mkdirSync(shared);
  chmodSync(shared, 0o1777);
  await sites.agent.ok('up');
}, 120_000);
afterAll(() => sites.close());

/** A site whose own directory is inside the shared one. */
function site(name: string, scratch = shared): string {
  sites.fair(name, `scratch = ${JSON.stringify(scratch)}\n`);
  return join(scratch, name);
}

/** The agent's directory at a site, once it exists. */
async function agentDirectory(top: string): Promise<string> {
  return await until('the directory', () => {
    const [agent] = existsSync(top) ? readdirSync(top) : [];
    return agent === undefined ? undefined : join(top, agent);
  });
}

async function why(cluster: number, words: RegExp): Promise<string> {
  return await until(`why to say ${words}`, async () => {
    const said = await sites.agent.ok('why', String(cluster));
    return words.test(said) ? said : undefined;
  });
}

/** Runs a job to completion at a site, if it may. */
async function runs(name: string): Promise<void> {
  const cluster = await sites.submit(name, 'echo ran', `output = ${name}.out`);
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
  expect(sites.agent.read(`${name}.out`)).toBe('ran\n');
}

/** An attacker's program in place of ours: it records that it was run. */
function canary(agentDir: string): string {
  const here = join(sites.sshd.home, 'canary');
  for (const bin of readdirSync(join(agentDir, 'bin')))
    writeFileSync(join(agentDir, 'bin', bin, 'jobmanager.sh'), `id >>'${here}'\n`, { mode: 0o755 });
  return here;
}

describe('a directory that all users of a cluster write into', () => {
  it('holds ours, which no other user can enter', async () => {
    const top = site('private');
    await runs('private');
    expect(statSync(top).mode & 0o777).toBe(0o700);
    expect(statSync(await agentDirectory(top)).mode & 0o777).toBe(0o700);
  }, 120_000);

  it.skipIf(ordinaryUser() === undefined)(
    'is left alone where another user made what would be ours',
    async () => {
      const { uid, gid, name } = ordinaryUser() ?? { uid: 0, gid: 0, name: '' };
      const top = site('premade');
      mkdirSync(top);
      chmodSync(top, 0o777);
      chownSync(top, uid, gid);
      const cluster = await sites.submit('premade', 'echo ran');
      expect(await why(cluster, /belongs to/)).toContain(`${top} belongs to ${name}`);
      expect(readdirSync(top)).toEqual([]);
      const { stdout, stderr, code } = await sites.agent.run(['site', 'test', 'premade']);
      expect(code).not.toBe(0);
      expect(stdout + stderr).toContain(`belongs to ${name}`);
      await sites.agent.ok('rm', '--force', String(cluster));
    },
    120_000,
  );

  it.skipIf(ordinaryUser() === undefined)(
    'is left alone where another user links to what is ours',
    async () => {
      const { uid, gid, name } = ordinaryUser() ?? { uid: 0, gid: 0, name: '' };
      const top = site('linked');
      const mine = join(sites.sshd.home, 'mine');
      mkdirSync(mine, { mode: 0o700 });
      symlinkSync(mine, top);
      const { lchownSync } = await import('node:fs');
      lchownSync(top, uid, gid);
      const cluster = await sites.submit('linked', 'echo ran');
      expect(await why(cluster, /is a link/)).toContain(`belongs to ${name}`);
      expect(readdirSync(mine)).toEqual([]);
      await sites.agent.ok('rm', '--force', String(cluster));
    },
    120_000,
  );

  it('is looked at before each start, and while a JobManager lives there', async () => {
    const top = site('swapped');
    await runs('swapped');
    const [pid] = processesOf('jobmanager.sh', sites.agent, sites.sshd.home);
    expect(pid).toBeDefined();
    // Another user could write there for a moment, and put a directory of his own in place of ours.
    chmodSync(top, 0o777);
    const directory = await agentDirectory(top);
    renameSync(directory, join(top, 'away'));
    mkdirSync(join(directory, 'bin'), { recursive: true });
    for (const bin of readdirSync(join(top, 'away/bin'))) mkdirSync(join(directory, 'bin', bin));
    const here = canary(directory);
    const cluster = await sites.submit('swapped', 'echo ran');
    expect(await why(cluster, /others may write/)).toContain(`others may write into ${top}`);
    expect(existsSync(here)).toBe(false);
    // As before, the job that waits there runs.
    rmSync(directory, { recursive: true });
    renameSync(join(top, 'away'), directory);
    chmodSync(top, 0o700);
    await sites.agent.ok('site', 'login', 'swapped').catch(() => undefined);
    await sites.agent.ok('wait', '--no-outcome', '--timeout', '150', String(cluster));
  }, 200_000);

  it('is of no use where everybody may rename what is in it', async () => {
    const loose = join(sites.sshd.home, 'loose');
    mkdirSync(loose);
    chmodSync(loose, 0o777);
    site('loose', loose);
    const cluster = await sites.submit('loose', 'echo ran');
    expect(await why(cluster, /sticky/)).toContain(`everybody may rename what is in ${loose}`);
    await sites.agent.ok('rm', '--force', String(cluster));
  }, 120_000);
});

describe("what a site's cleaner takes", () => {
  it.each([
    ['the programs', ['bin']],
    ['one program', ['bin/*/wrapper.sh']],
    ['the content', ['cache']],
    ['the places of news', ['events', 'tmp', 'in', 'trash', 'groups']],
    ['all that is ours', ['']],
  ])(
    'is there again: %s',
    async (what, paths) => {
      const name = `cleaned-${what.replaceAll(/\W/g, '-')}`;
      const top = site(name);
      await runs(name);
      const directory = await agentDirectory(top);
      for (const path of paths) {
        const [bin = ''] = readdirSync(join(directory, 'bin'));
        rmSync(path === '' ? top : join(directory, path.replace('*', bin)), { recursive: true });
      }
      sites.agent.file('job.sh', '#!/bin/sh\ncat in.dat\n', 0o755);
      sites.agent.file('in.dat', `${what}\n`);
      const cluster = await sites.agent.submit(
        `universe = grid\ngrid_resource = batch fork ${name}\nexecutable = job.sh\ntransfer_input_files = in.dat\noutput = ${name}.out\nqueue\n`,
      );
      await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
      expect(sites.agent.read(`${name}.out`)).toBe(`${what}\n`);
    },
    120_000,
  );

  it('is said of the jobs that were there: they are held, and a release runs them', async () => {
    const top = site('vanishing');
    const ledger = join(sites.sshd.home, 'ledger');
    const cluster = await sites.submit(
      'vanishing',
      `echo x >>${ledger}; [ -e ${ledger}.go ] || sleep 100`,
      'output = v.out',
    );
    await until('it runs', () => existsSync(ledger) || undefined);
    const directory = await agentDirectory(top);
    for (const key of readdirSync(join(directory, 'jobs'))) rmSync(join(directory, 'jobs', key), { recursive: true });
    for (const pid of processesOf('sleep 100', sites.agent, sites.sshd.home)) process.kill(pid);
    const ad = await sites.settled(cluster, 90_000);
    expect(ad).toMatchObject({ JobStatus: 5 });
    expect(ad['HoldReason']).toMatch(/no record of the job any more|left no exit status|has no files of/);
    writeFileSync(`${ledger}.go`, '');
    await sites.agent.ok('release', String(cluster));
    await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(readFileSync(ledger, 'utf8')).toBe('x\nx\n');
  }, 200_000);
});

it('a job that waited in the queue of a site that lost its directory is not left waiting for ever', async () => {
  sites.fair('waiting', `scratch = ${JSON.stringify(shared)}\nlimits.running = 1\n`);
  const top = join(shared, 'waiting');
  const go = join(sites.sshd.home, 'go-on');
  const first = await sites.submit('waiting', `while [ ! -e ${go} ]; do sleep 0.2; done`);
  const directory = await agentDirectory(top);
  await until('the first runs', async () => (await sites.agent.ads(first))[0]?.['JobStatus'] === 2 || undefined);
  const second = await sites.submit('waiting', 'echo ran', 'output = waiting.out');
  const key = await until('the second to be there', () =>
    readdirSync(join(directory, 'jobs')).find(
      (name) => name.includes(`.${second}.0.`) && existsSync(join(directory, 'jobs', name, 'id.1')),
    ),
  );
  rmSync(join(directory, 'jobs', key), { recursive: true });
  writeFileSync(go, '');
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(first));
  const ad = await sites.settled(second, 120_000);
  expect(ad).toMatchObject({ JobStatus: 5 });
  expect(ad['HoldReason']).toContain('no record of the job any more');
  await sites.agent.ok('release', String(second));
  await sites.agent.ok('wait', '--no-outcome', '--timeout', '60', String(second));
  expect(sites.agent.read('waiting.out')).toBe('ran\n');
}, 200_000);
