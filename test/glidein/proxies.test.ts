import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { startTarget, type Target } from '../crash/sites.ts';
import { type GridCa, makeGridCa } from '../sites/grid-ca.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

/** Lifetime of the proxy that the job starts with, in seconds. */
const LIFE = 150;

describe.skipIf(!SLOW || skipWithoutSlurm())('a job with an X.509 proxy at a glidein, through Slurm over ssh', () => {
  let agent: GlideinAgent;
  let target: Target;
  let ca: GridCa;
  beforeAll(async () => {
    ca = makeGridCa();
    agent = new GlideinAgent({ X509_CERT_DIR: ca.trust, X509_USER_PROXY: undefined });
    agent.configure('idle = "60s"');
    target = await startTarget('slurm, ssh', agent);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await target?.stop();
    ca?.stop();
  });

  it('has one of its own there, which the grid takes, and which is renewed there before it ends', async () => {
    const jane = ca.person('Jane Roe');
    chmodSync(jane.key, 0o600);
    const proxy = join(agent.dir, 'proxy');
    const make = (hours: string) =>
      agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--out', proxy, '--hours', hours);
    await agent.ok('glidein', 'start', '--site', 'cluster', '-n', '1', '--walltime', '20m', '--cores', '1');
    await agent.untilHome();
    await make((LIFE / 3600).toFixed(4));
    const seen = join(agent.work, 'seen');
    agent.file(
      'job.sh',
      `#!/bin/sh
cp "$X509_USER_PROXY" '${seen}.new' && mv '${seen}.new' '${seen}'
while ! openssl x509 -noout -checkend ${LIFE * 10} -in "$X509_USER_PROXY" >/dev/null; do sleep 0.5; done
ls -l "$X509_USER_PROXY" | cut -c1-10
openssl verify -allow_proxy_certs -CApath '${ca.trust}' -untrusted "$X509_USER_PROXY" "$X509_USER_PROXY" | sed 's/.*: //'
`,
      0o755,
    );
    const cluster = await agent.submit(
      `executable = job.sh\nshould_transfer_files = YES\nx509userproxy = ${proxy}\noutput = out\nqueue\n`,
    );
    await until('it to run', () => existsSync(seen) || undefined, 90_000);
    await make('1');
    await agent.ok('wait', '--no-outcome', '--timeout', String(LIFE), String(cluster));
    expect(agent.read('out')).toBe('-rw-------\nOK\n');
    expect((await agent.ads(cluster))[0]).toMatchObject({ ExitCode: 0, NumJobStarts: 1 });
  }, 400_000);
});
