import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeGridCa } from '../sites/grid-ca.ts';
import { startSshd, type Sshd } from '../sites/sshd.ts';
import { some } from '../slow.ts';
import { TestAgent } from './agent.ts';

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
if (!existsSync(FAKETIME)) process.stderr.write('Tests with another clock are left out: faketime is not installed.\n');

/** Minutes by which the agent's clock is off; the site's clock is right. */
describe.skipIf(!existsSync(FAKETIME)).each(some([4, -4], 2))('an agent whose clock is %i minutes off', (minutes) => {
  const ca = makeGridCa();
  let sshd: Sshd;
  let agent: TestAgent;

  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({
      HOME: sshd.clientHome,
      X509_CERT_DIR: ca.trust,
      X509_USER_PROXY: undefined,
      LD_PRELOAD: FAKETIME,
      FAKETIME: `${minutes > 0 ? '+' : ''}${minutes * 60}`,
      // Sleeps last as long as requested.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    });
    const redis = join(agent.dir, 'redis-server');
    writeFileSync(redis, '#!/bin/sh\nunset LD_PRELOAD FAKETIME\nexec redis-server "$@"\n', { mode: 0o755 });
    agent.env['GRYPHUS_REDIS_SERVER'] = redis;
    agent.config('[daemons]\nenvironment = ["LD_PRELOAD", "FAKETIME*"]\n');
    agent.site('there', { url: sshd.url, batch: 'fork' });
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
