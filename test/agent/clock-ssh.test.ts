import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeGridCa } from '../sites/grid-ca.ts';
import { startSshd, type Sshd } from '../sites/sshd.ts';
import { seeded } from '../seeded.ts';
import { SLOW, some } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { processesOf } from './kill.ts';

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
if (!existsSync(FAKETIME)) process.stderr.write('Tests with another clock are left out: faketime is not installed.\n');

/** An agent with another clock, as these variables say, and a site with the right one. Sleeps last as long as requested. */
function agentWithClock(sshd: Sshd, env: NodeJS.ProcessEnv, settings = ''): TestAgent {
  const agent = new TestAgent({
    HOME: sshd.clientHome,
    LD_PRELOAD: FAKETIME,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    ...env,
  });
  const redis = join(agent.dir, 'redis-server');
  writeFileSync(redis, '#!/bin/sh\nunset LD_PRELOAD\nexec redis-server "$@"\n', { mode: 0o755 });
  agent.env['GRYPHUS_REDIS_SERVER'] = redis;
  agent.config(`[daemons]\nenvironment = ["LD_PRELOAD", "FAKETIME*"]\n${settings}`);
  agent.site('there', { url: sshd.url, batch: 'fork' });
  return agent;
}

/** Minutes by which the agent's clock is off; the site's clock is right. */
describe.skipIf(!existsSync(FAKETIME)).each(some([4, -4], 2))('an agent whose clock is %i minutes off', (minutes) => {
  const ca = makeGridCa();
  let sshd: Sshd;
  let agent: TestAgent;

  beforeAll(async () => {
    sshd = await startSshd();
    agent = agentWithClock(sshd, {
      X509_CERT_DIR: ca.trust,
      X509_USER_PROXY: undefined,
      FAKETIME: `${minutes > 0 ? '+' : ''}${minutes * 60}`,
    });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
    ca.stop();
  });

  it('runs its jobs once, with proxies that the site takes, and tells times that can be', async () => {
    const jane = ca.person('Jane Roe');
    chmodSync(jane.key, 0o600);
    const proxy = join(agent.dir, 'proxy');
    await agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--out', proxy, '--hours', '1');
    agent.file(
      'job.sh',
      `#!/bin/sh\necho x >>'${agent.work}/ledger'\nopenssl verify -allow_proxy_certs -CApath '${ca.trust}' -untrusted "$X509_USER_PROXY" "$X509_USER_PROXY" | sed 's/.*: //'\nsleep 1\n`,
      0o755,
    );
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = batch fork there\nexecutable = job.sh\nx509userproxy = ${proxy}\noutput = out\nlog = log\nqueue\n`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
    expect(agent.read('out')).toBe('OK\n');
    expect(agent.read('ledger')).toBe('x\n');
    const [ad = {}] = await agent.ads(cluster);
    const at = (name: string) => Number(ad[name]);
    const apart = at('QDate') - Date.now() / 1000;
    expect(Math.abs(apart - minutes * 60)).toBeLessThan(90);
    expect(ad).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
    expect(at('RemoteWallClockTime')).toBeGreaterThanOrEqual(0);
    expect(at('RemoteWallClockTime')).toBeLessThan(60);
    expect(at('CompletionDate')).toBeGreaterThanOrEqual(at('QDate'));
  }, 300_000);

  it('says so where its site is tested', async () => {
    const json = await agent.ok('site', 'test', 'there', '--json');
    const clock = JSON.parse(json) as { step: string; ok: boolean; message: string }[];
    const found = clock.find(({ step }) => step === 'clock');
    expect(found?.message).toMatch(minutes > 0 ? /^2\d\d s behind ours$/ : /^2\d\d s before ours$/);
    expect(clock.every(({ ok }) => ok)).toBe(true);
  }, 120_000);
});

/** Longer than the leases of the queue. */
const AFTER_MS = 20_000;

describe.skipIf(!SLOW || !existsSync(FAKETIME)).each([86_400, -86_400])(
  'a clock that was %i s off for a day, and is set while jobs run',
  (seconds) => {
    let sshd: Sshd;
    let agent: TestAgent;
    let clock: string;
    const set = (by: number) => writeFileSync(clock, `${by < 0 ? '' : '+'}${by}\n`);

    beforeAll(async () => {
      sshd = await startSshd();
      const dir = mkdtempSync(join(tmpdir(), 'gryphus-clock-'));
      clock = join(dir, 'clock');
      set(seconds);
      agent = agentWithClock(
        sshd,
        { FAKETIME_NO_CACHE: '1', FAKETIME_TIMESTAMP_FILE: clock },
        '[gridmanager]\nretry_max = "2s"\n',
      );
      await agent.ok('up');
    }, 120_000);
    afterAll(async () => {
      await agent.end();
      rmSync(dirname(clock), { recursive: true });
      await sshd.stop();
    });

    it('runs each job once, at a site and in the pool, and takes new ones at once', async () => {
      agent.file('ledger', '');
      const submit = (name: string, where: string) =>
        agent.submit(
          `${where}\nexecutable = /bin/sh\ntransfer_executable = false\nrequest_memory = 20M\nlog = ${name}.log\n` +
            `arguments = "-c 'echo ${name} >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done'"\nqueue\n`,
        );
      const site = await submit('site', 'universe = grid\ngrid_resource = batch fork there');
      const pool = await submit('pool', 'universe = vanilla');
      await agent.ok('wait', '--until', 'start', '--timeout', '90', String(site), String(pool));
      const [before = {}] = await agent.ads(site);
      expect(Math.abs(Number(before['QDate']) - Date.now() / 1000 - seconds)).toBeLessThan(300);
      set(0);
      await sleep(AFTER_MS);
      const more = await submit('more', 'universe = grid\ngrid_resource = batch fork there');
      await agent.ok('wait', '--until', 'start', '--timeout', '90', String(more));
      agent.file('go', '');
      await agent.ok('wait', '--no-outcome', '--timeout', '120', ...[site, pool, more].map(String));
      expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(['more', 'pool', 'site']);
      for (const cluster of [site, pool, more]) {
        const [ad = {}] = await agent.ads(cluster);
        expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
        expect(Number(ad['RemoteWallClockTime'])).toBeGreaterThanOrEqual(0);
      }
      for (const name of ['site', 'pool', 'more']) expect(agent.read(`${name}.log`).match(/^005 /gm)).toHaveLength(1);
    }, 400_000);
  },
);

const NIGHT_S = 8 * 3600;
/** Between two processes that wake one after another, milliseconds; at most. */
const GAP_MS = 3000;

/** In suspend, processes stand still, CLOCK_MONOTONIC with them, CLOCK_REALTIME goes on, and servers end connections. */
describe.skipIf(!SLOW || !existsSync(FAKETIME))('a laptop that sleeps for two nights', () => {
  const ca = makeGridCa();
  let sshd: Sshd;
  let agent: TestAgent;
  let clock: string;
  const set = (by: number) => writeFileSync(clock, `+${by}\n`);

  beforeAll(async () => {
    sshd = await startSshd();
    clock = join(mkdtempSync(join(tmpdir(), 'gryphus-clock-')), 'clock');
    set(0);
    agent = agentWithClock(
      sshd,
      {
        X509_CERT_DIR: ca.trust,
        X509_USER_PROXY: undefined,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_TIMESTAMP_FILE: clock,
      },
      '[gridmanager]\nretry_max = "2s"\n[pool]\ncpus = 3\n',
    );
    agent.site('there', { url: sshd.url, batch: 'fork', more: '[limits]\nrunning = 5\n' });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    rmSync(dirname(clock), { recursive: true });
    await sshd.stop();
    ca.stop();
  });

  /** Everything that runs on the laptop stands still, and wakes together or, given numbers, in that order with pauses. */
  async function night(at: number, random?: () => number): Promise<void> {
    const all = processesOf('.', agent);
    expect(all.length).toBeGreaterThan(6);
    const signal = (pid: number, name: NodeJS.Signals) => {
      try {
        process.kill(pid, name);
      } catch {
        // It had ended.
      }
    };
    for (const pid of all) signal(pid, 'SIGSTOP');
    sshd.killSessions();
    set(at * NIGHT_S);
    await sleep(AFTER_MS);
    for (const pid of random ? all.map((pid) => ({ pid, by: random() })).sort((a, b) => a.by - b.by) : all) {
      signal(typeof pid === 'number' ? pid : pid.pid, 'SIGCONT');
      if (random) await sleep(random() * GAP_MS);
    }
  }

  it('goes on by itself, woken together or in any order: each job once, none held but the one whose credential ended', async () => {
    const seed = Number(process.env['GRYPHUS_SEED'] ?? Date.now() % 100_000);
    process.stderr.write(`The order of waking: GRYPHUS_SEED=${seed}\n`);
    agent.file('ledger', '');
    const jane = ca.person('Jane Roe');
    chmodSync(jane.key, 0o600);
    const proxy = join(agent.dir, 'proxy');
    await agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--out', proxy, '--hours', '2');
    const submit = (name: string, where: string, procs = 1) =>
      agent.submit(
        `${where}\nexecutable = /bin/sh\ntransfer_executable = false\nrequest_memory = 20M\nlog = ${name}.log\n` +
          `arguments = "-c 'echo ${name} $(Process) >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done'"\nqueue ${procs}\n`,
      );
    const there = 'universe = grid\ngrid_resource = batch fork there';
    const pool = 'universe = vanilla';
    const clusters = [await submit('site', there, 2), await submit('pool', pool)];
    await agent.ok('wait', '--until', 'start', '--timeout', '90', ...clusters.map(String));
    const proxied = await submit('proxied', `${there}\nx509userproxy = ${proxy}\nhold = true`);

    for (const [at, random] of [undefined, seeded(seed)].entries()) {
      await night(at + 1, random);
      const woken = Date.now();
      if (at === 0) await agent.ok('release', String(proxied));
      const more = [await submit(`site-${at}`, there), await submit(`pool-${at}`, pool)];
      await agent.ok('wait', '--until', 'start', '--timeout', '90', ...more.map(String));
      expect(Date.now() - woken).toBeLessThan(60_000);
      clusters.push(...more);
      for (const cluster of clusters)
        for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ JobStatus: 2, NumJobStarts: 1 });
    }
    await until(
      'the job whose credential ended to be held',
      async () => (await agent.ads(proxied))[0]?.['JobStatus'] === 5 || undefined,
    );
    expect(String((await agent.ads(proxied))[0]?.['HoldReason'])).toMatch(/expired|ended/);
    agent.file('go', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '120', ...clusters.map(String));
    expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual([
      'pool 0',
      'pool-0 0',
      'pool-1 0',
      'site 0',
      'site 1',
      'site-0 0',
      'site-1 0',
    ]);
    for (const cluster of clusters)
      for (const ad of await agent.ads(cluster)) expect(ad).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    for (const name of ['site', 'pool', 'site-0', 'pool-0', 'site-1', 'pool-1'])
      expect(agent.read(`${name}.log`)).not.toMatch(/^(012|024|022) /m);
  }, 400_000);
});
