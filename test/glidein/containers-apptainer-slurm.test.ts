import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { until } from '../agent/agent.ts';
import { Apptainer, skipWithoutApptainer } from '../sites/apptainer.ts';
import { type GridCa, makeGridCa } from '../sites/grid-ca.ts';
import { skipWithoutSlurm, type Slurm, startSlurm } from '../sites/slurm.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { some } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

describe.skipIf(skipWithoutApptainer() || skipWithoutSlurm())('pilots at sites with and without apptainer', () => {
  let agent: GlideinAgent;
  let apptainer: Apptainer;
  let slurm: Slurm;
  let sshd: Sshd;
  let ca: GridCa;
  let proxy: string;

  beforeAll(async () => {
    [slurm, sshd] = await Promise.all([startSlurm({ nodes: 1, cpus: 2 }), startSshd()]);
    apptainer = new Apptainer();
    ca = makeGridCa();
    agent = new GlideinAgent({ X509_CERT_DIR: ca.trust });
    agent.configure('idle = "60s"');
    agent.env['HOME'] = sshd.clientHome;
    const prelude = (env: Readonly<Record<string, string>>) =>
      Object.entries(env)
        .map(([name, value]) => `export ${name}=${shellQuote(value)}`)
        .join('; ');
    const more = '[limits]\npoll_min = "1s"\npoll_max = "2s"\n[glidein]\nmax = 1\ncores = 2\nwalltime = "1h"\n';
    const path = `${apptainer.env['PATH']}:${slurm.env['PATH']}`;
    agent.site('cluster', { url: sshd.url, batch: 'slurm', prelude: prelude({ ...slurm.env, PATH: path }), more });
    // From what is installed, what a pilot needs, and nothing that starts containers.
    const tools = join(agent.dir, 'tools');
    const script = 'mkdir "$1"; ln -s /usr/bin/* "$1"; rm -f "$1"/podman "$1"/docker "$1"/apptainer "$1"/singularity';
    execFileSync('sh', ['-c', script, 'sh', tools]);
    agent.site('bare', { url: sshd.url, batch: 'fork', prelude: prelude({ PATH: tools }), more });
    const jane = ca.person('Jane Roe');
    chmodSync(jane.key, 0o600);
    proxy = join(agent.dir, 'proxy.pem');
    copyFileSync(apptainer.sif, join(agent.work, 'the tools.sif'));
    agent.file('data', 'carried\n');
    await agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--out', proxy, '--hours', '1');
    await agent.ok('up');
  }, 90_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
    await sshd?.stop();
    apptainer?.end();
    ca?.stop();
  });

  /** Collects everything a job can see of its environment, from inside its container. */
  const LOOK = `#!/bin/sh
pwd
cat data
grep ^ClusterId "$_CONDOR_JOB_AD"
grep ^GryphusSite "$_CONDOR_MACHINE_AD"
grep -c BEGIN "$X509_USER_PROXY"
[ "$_CONDOR_SCRATCH_DIR" = "$PWD" ] && echo scratch
echo "$APPTAINER_NAME" | grep -c .
echo "$LINES"
echo made >"a result"
exit 3
`;
  const description = (more: string) =>
    `executable = look.sh\ncontainer_image = the tools.sif\ntransfer_input_files = data\nx509userproxy = ${proxy}\nenvironment = "LINES='one \`id\`'"\noutput = out\nerror = err\nlog = log\n${more}\nqueue\n`;

  it('run jobs in containers where it is, with right paths inside, and the factory asks for none where it is not', async () => {
    agent.file('look.sh', LOOK, 0o755);
    // Every worker that connects from `bare` reports that it has none.
    await agent.ok('glidein', 'start', '--site', 'bare', '-n', '1', '--walltime', '1h', '--cores', '1');
    await agent.untilHome();
    const looked = async () => (await agent.ok('status', '--pool', '-l')).includes('HasContainer = false') || undefined;
    await until('it to have looked', looked, 60_000);
    const places = [
      ['container_target_dir = /srv/job', '/srv/job'],
      ['', undefined],
    ] as const;
    for (const [target, where] of some(places, 2)) {
      const cluster = await agent.submit(description(target));
      await agent.run(['wait', '--no-outcome', '--timeout', '120', String(cluster)]);
      const [ad] = await agent.ads(cluster);
      expect(agent.read('err')).toBe('');
      expect(ad).toMatchObject({ ExitCode: 3, NumJobStarts: 1 });
      const [pwd, data, job, machine, keys, scratch, image, lines] = agent.read('out').split('\n');
      if (where === undefined) expect(pwd).toMatch(/\/work$/);
      else expect(pwd).toBe(where);
      expect(data).toBe('carried');
      expect(job).toBe(`ClusterId = ${cluster}`);
      expect(machine).toBe('GryphusSite = "cluster"');
      expect(Number(keys)).toBeGreaterThan(2);
      expect([scratch, image, lines]).toEqual(['scratch', '1', 'one `id`']);
      expect(agent.read('a result')).toBe('made\n');
    }
    const pilots = await agent.pilots();
    expect(pilots.filter((pilot) => pilot.by === 'factory').map(({ site }) => site)).toEqual(['cluster']);
    const never = await agent.submit(description('requirements = TARGET.GryphusSite == "bare"'));
    const why = async () => {
      const text = await agent.ok('why', `${never}.0`);
      return text.includes('Site bare gets no pilots for it: ') && text.includes('could not run its container')
        ? text
        : undefined;
    };
    await until('the words', why, 30_000);
    await agent.ok('rm', String(never));
    await agent.ok('glidein', 'stop', '--all');
    await agent.untilOver();
  }, 300_000);
});
