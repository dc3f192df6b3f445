import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { SLOW } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

/** Whether a machine with an uptime of its own can be made here. */
const CAN_SLEEP = spawnSync('unshare', ['--mount', 'true']).status === 0;
const LEASE_S = 3600;

/** The machine of a pilot sleeps for longer than the lease of its job; the agent's machine does not. */
describe.skipIf(!SLOW || !CAN_SLEEP)("a pilot's machine that sleeps", () => {
  let dir: string;
  let sshd: Sshd;
  let agent: GlideinAgent;
  const up = () => Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
  const set = (slept: number) => writeFileSync(join(dir, 'uptime'), `${(up() + slept).toFixed(2)} 0.00\n`);

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus-asleep-'));
    set(0);
    const program = join(dir, 'sshd');
    const script = `mount --bind ${dir}/uptime /proc/uptime && exec /usr/sbin/sshd "$@"`;
    writeFileSync(program, `#!/bin/sh\nexec unshare --mount sh -c '${script}' sshd "$@"\n`, { mode: 0o755 });
    sshd = await startSshd({ program });
    agent = new GlideinAgent({ HOME: sshd.clientHome });
    agent.configure('lease = "3h"');
    agent.site('there', { url: sshd.url, batch: 'fork', more: '[limits]\nrunning = 2\npoll_min = "1s"\n' });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
    rmSync(dir, { recursive: true });
  });

  it('ends its job as soon as it wakes, since the agent may run it elsewhere; then the job runs again', async () => {
    agent.file('ledger', '');
    await agent.ok('glidein', 'start', '--site', 'there', '-n', '1', '--walltime', '3h', '--cores', '1');
    await agent.untilHome(1);
    const cluster = await agent.submit(
      `executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\nrequest_memory = 20M\njob_lease_duration = ${LEASE_S}\n` +
        `job_max_vacate_time = 600\n` +
        `arguments = "-c 'trap : TERM; echo $$ >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done'"\nqueue\n`,
    );
    const [first = ''] = await until('it to run', () =>
      agent.ledger('ledger').filter(Boolean).slice(0, 1)[0] ? agent.ledger('ledger') : undefined,
    );
    sshd.kill();
    set(LEASE_S - 60);
    await new Promise((resume) => setTimeout(resume, 2000));
    expect(existsSync(`/proc/${first}`)).toBe(true);
    set(LEASE_S + 60);
    await until('its end', () => !existsSync(`/proc/${first}`) || undefined, 5000);
    await sshd.restart();
    await until('another start', () => agent.ledger('ledger').length === 2 || undefined);
    agent.file('go', '');
    await agent.ok('wait', '--timeout', '60', String(cluster));
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 2 });
  }, 240_000);
});
