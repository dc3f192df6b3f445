import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../agent/agent.ts';
import { startTarget, type Target } from '../crash/sites.ts';
import { CAN_MOUNT, type SmallDisk, smallDisk } from '../pool/small-disk.ts';
import { skipWithoutSlurm } from '../sites/slurm.ts';
import { SLOW } from '../slow.ts';
import { each, GlideinAgent } from './ground.ts';

describe.skipIf(!SLOW || !CAN_MOUNT || skipWithoutSlurm())(
  "a full disk at a glidein's node, through Slurm over ssh",
  () => {
    let agent: GlideinAgent;
    let target: Target;
    let site: SmallDisk;
    let scratch: SmallDisk;
    beforeAll(async () => {
      agent = new GlideinAgent();
      agent.configure('idle = "120s"');
      target = await startTarget('slurm, ssh', agent);
      mkdirSync(target.siteDir, { recursive: true, mode: 0o700 });
      site = smallDisk(target.siteDir, 500_000);
      scratch = smallDisk(join(agent.dir, 'scratch of the node'), 16_384);
      appendFileSync(join(agent.home, 'sites/cluster.toml'), `\n[glidein]\nscratch = "${scratch.dir}"\n`);
      await agent.ok('up');
    }, 120_000);
    afterAll(async () => {
      await agent.run(['glidein', 'stop', '--all']);
      await agent.run(['down']);
      scratch?.unmount();
      site?.unmount();
      await agent.end();
      await target?.stop();
    });

    const start = () =>
      agent.ok('glidein', 'start', '--site', 'cluster', '-n', '1', '--walltime', '20m', '--cores', '2');
    const small = 'request_disk = 100\nmax_retries = 2';

    it('keeps a pilot from starting where it is full before, and says why', async () => {
      // What the site itself needs is available.
      await start();
      await agent.untilHome();
      await agent.ok('glidein', 'stop', '--all');
      await agent.untilOver();
      scratch.fill(2048);
      site.fill(6144);
      await start();
      const said = /it has too little disk space: .* KB free, and 10240 KB are needed/;
      const told = async () =>
        said.test(`${(await agent.run(['glidein', 'list'])).stdout}${agent.log('scheduler.log')}`) || undefined;
      await until('why it could not run', told, 90_000);
      await agent.untilOver();
      site.free();
      scratch.free();
    }, 300_000);

    it('costs no job anything: what fills it ends as it ended, the others wait and run once there is space', async () => {
      await start();
      await agent.untilHome();
      const fat = await agent.submit(
        'executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\nrequest_disk = 100\ntransfer_output_files = ""\n' +
          `arguments = "-c 'echo x >>${agent.work}/fat; cat /dev/zero >fat 2>/dev/null; exit 5'"\nqueue\n`,
      );
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(fat));
      expect((await agent.ads(fat))[0]).toMatchObject({ ExitCode: 5, NumJobStarts: 1 });
      expect(agent.read('fat')).toBe('x\n');
      scratch.fill();
      const jobs = await agent.submit(agent.jobs('ledger', 6, 0.1, small));
      const why = async () => (await agent.run(['why', String(jobs)])).stdout.includes('its disk is full') || undefined;
      await until('why they wait', why);
      expect(agent.begun('ledger')).toBe(0);
      scratch.free();
      await agent.ok('wait', '--no-outcome', '--timeout', '120', String(jobs));
      expect(agent.ledger('ledger')).toEqual(each(6));
      for (const n of each(6)) expect(agent.read(`ledger.${n}.out`)).toBe(`job ${n}\n`);
    }, 300_000);
  },
);
