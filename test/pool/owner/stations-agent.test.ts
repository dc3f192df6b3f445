import { type ChildProcess, spawn } from 'node:child_process';
import { loadavg } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../agent/agent.ts';
import { ordinaryUser } from '../../sites/ordinary-user.ts';
import { startSshd } from '../../sites/sshd.ts';
import { SLOW } from '../../slow.ts';
import { Stations } from './stations.ts';
import { stopped, ticksOf } from './ticks.ts';
import { Typist } from './typist.ts';

const NO_LOAD = 'HighLoad = 1000.0\nBackgroundLoad = 1000.0\n';
/** A terminal shows a key only after up to eight seconds: HTCondor's minute is shortened to twelve. */
const KEYS = `StartIdleTime = 12\nKeyboardBusy = "KeyboardIdle < 12"\n${NO_LOAD}`;
const BUSY = 'while :; do :; done & while :; do :; done';

describe.runIf(SLOW)('the owner of one of two machines', () => {
  const stations = new Stations();
  let typist: Typist;
  let terminal = '';
  const policies = {
    hunter: () =>
      `policy = "hunter"\nidle_sources = ["terminals"]\nignore_terminals = ["*", "!${terminal}"]\npreempt = 'Activity == "Suspended" && ActivityTimer >= 5'\n[pool.attributes]\n${KEYS}`,
    desktop: () =>
      `policy = "desktop"\nidle_sources = ["terminals"]\nignore_terminals = ["*", "!${terminal}"]\n[pool.attributes]\nMaxSuspendTime = 4\nContinueIdleTime = 15\n${KEYS}`,
  };

  beforeAll(async () => {
    typist = new Typist();
    terminal = await typist.terminal();
    await stations.open(policies.hunter());
  }, 120_000);
  afterAll(async () => {
    await typist.end();
    await stations.close();
  });

  it.each(['hunter', 'desktop'] as const)(
    'types at a terminal: under %s the job stops within 13 s, uses nothing more, and goes on elsewhere within 10 s',
    async (policy) => {
      stations.policy(policies[policy]());
      const cluster = await stations.forever(BUSY);
      const key = await stations.runsAt(cluster, 'local');
      const at = Date.now();
      typist.type();
      const took = (await stopped(key)) - at;
      expect(took).toBeLessThan(13_000);
      const before = ticksOf(key);
      await stations.moved(key, 'suspended');
      expect(ticksOf(key)).toBe(before);
      const vacated = await stations.moved(key, 'vacating');
      await stations.runsAt(cluster, 'other');
      const elsewhere = Date.now() - vacated;
      typist.rest();
      expect(elsewhere).toBeLessThan(10_000);
      expect((await stations.ads(cluster))[0]).toMatchObject({ TotalSuspensions: 1, NumJobStarts: 2 });
      process.stderr.write(`${policy}: stopped after ${took} ms, elsewhere after ${elsewhere} ms\n`);
      await stations.ok('rm', String(cluster));
    },
    180_000,
  );

  const daemon = ordinaryUser();
  it.runIf(daemon)(
    'logs in by ssh as somebody else, even without a terminal: the job stops',
    async () => {
      stations.policy(
        `policy = "hunter"\nidle_sources = ["ssh"]\n[pool.attributes]\nStartIdleTime = 2\nKeyboardBusy = "KeyboardIdle < 3"\n${NO_LOAD}`,
      );
      const sshd = await startSshd({ user: daemon?.name ?? '', config: ['ForceCommand internal-sftp'] });
      const cluster = await stations.forever(BUSY);
      const key = await stations.runsAt(cluster, 'local');
      const at = Date.now();
      const client = spawn('ssh', ['-F', sshd.sshConfigFile, '-s', 'site', 'sftp'], {
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      try {
        expect((await stations.moved(key, 'suspended')) - at).toBeLessThan(10_000);
        // Only the log-in itself is a sign; what the session does is not.
        await stations.moved(key, 'busy');
      } finally {
        client.kill();
        await sshd.stop();
        await stations.ok('rm', String(cluster));
      }
    },
    120_000,
  );

  it('starts something large: the job stops, but not for its own load', async () => {
    const others: ChildProcess[] = [];
    const spin = 'i=0; while [ $i -lt 24 ]; do nice -n 19 sh -c "while :; do :; done" & i=$((i + 1)); done; wait';
    // What else runs on this machine has a load too.
    const high = loadavg()[0] ?? 0;
    stations.policy(
      `policy = "hunter"\nstart = "true"\nsuspend = "CpuBusy"\ncontinue = "CpuIdle"\n[pool.attributes]\nHighLoad = ${(high + 5).toFixed(1)}\nBackgroundLoad = 0.0\n`,
    );
    const cluster = await stations.forever(spin);
    const key = await stations.runsAt(cluster, 'local');
    try {
      await until('the load to be high', () => (loadavg()[0] ?? 0) > high + 9 || undefined, 120_000);
      expect(stations.movesOf(key)).toEqual([]);
      const [slot] = (await stations.slots()).filter((ad) => ad['GryphusSite'] === 'local');
      expect(Number(slot?.['CondorLoadAvg'])).toBeGreaterThan(4);
      others.push(spawn('sh', ['-c', spin], { stdio: 'ignore', detached: true }));
      await stations.moved(key, 'suspended');
    } finally {
      for (const { pid } of others) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
      await stations.ok('rm', String(cluster));
    }
  }, 300_000);
});
