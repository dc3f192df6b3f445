import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { secondsOf } from './kill.ts';

/** Long enough for several tries at each step; 300 s were tried at each place. */
const LONG_MS = Number(process.env['GRYPHUS_FULL_DISK_SECONDS'] ?? 15) * 1000;
/** The processor time that all daemons together may use while they cannot write, as a part of the time. */
const BUSY = 0.25;

const mounted =
  spawnSync('sh', ['-c', 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d"']).status === 0;

describe.runIf(mounted)('a full disk', () => {
  let agent: TestAgent;
  const mounts: string[] = [];
  afterEach(async () => {
    await agent.run(['down']);
    for (const dir of mounts.splice(0)) spawnSync('umount', ['-l', dir]);
    await agent.end();
  });

  const disk = (dir: string, size: string): string => {
    mkdirSync(dir, { recursive: true });
    spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'none', dir]);
    mounts.push(dir);
    return dir;
  };
  const fill = (file: string): void => {
    spawnSync('dd', ['if=/dev/zero', `of=${file}`, 'bs=4k']);
  };
  const job = (script: string, more: readonly string[] = []) =>
    agent.submit(
      [
        'universe = grid',
        'grid_resource = batch fork near',
        'executable = /bin/sh',
        'transfer_executable = false',
        `arguments = "-c 'echo x >>${agent.work}/ledger; ${script}'"`,
        ...more,
        'queue',
      ].join('\n'),
    );
  /** Waits while the disk is full, in which the daemons must not be busy with it. */
  const long = async () => {
    await sleep(5000); // What has just ended, or filled it, costs something.
    const before = secondsOf(agent);
    await sleep(LONG_MS);
    const used = secondsOf(agent) - before;
    expect(used).toBeLessThan((LONG_MS / 1000) * BUSY);
  };
  const ledger = () => readFileSync(join(agent.work, 'ledger'), 'utf8').trim().split('\n').length;
  const wait = (cluster: number) => agent.ok('wait', '--no-outcome', '--timeout', '90', String(cluster));

  it('at the site, filled by the job itself, costs neither its exit status nor the next one', async () => {
    agent = new TestAgent();
    const scratch = disk(join(agent.dir, 'scratch'), '3m');
    agent.site('near', { url: 'local', batch: 'fork', more: `scratch = "${scratch}"\n` });
    agent.file('ledger', '');
    const cluster = await job('dd if=/dev/zero of=fat bs=64k 2>dd; exit 5', ['transfer_output_files = ""']);
    await wait(cluster);
    expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 5, NumJobStarts: 1 });
    expect(ledger()).toBe(1);
    // Its files there are forgotten, so there is space again.
    const next = await job('exit 0');
    await wait(next);
    expect((await agent.ads(next))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0 });
  }, 240_000);

  it(
    'under the queue: nothing more is acknowledged, one error says so, and all continues when there is space',
    async () => {
      agent = new TestAgent();
      disk(agent.home, '12m');
      mkdirSync(join(agent.home, 'sites'), { mode: 0o700 });
      agent.site('near', { url: 'local', batch: 'fork', more: `scratch = "${agent.dir}/near"\n` });
      agent.file('ledger', '');
      const first = await job(`while [ ! -e ${agent.work}/go ]; do sleep 0.2; done; echo done`, ['output = out']);
      await until('it to run', async () => (await agent.ads(first))[0]?.['JobStatus'] === 2 || undefined);
      fill(join(agent.home, 'fat'));
      let acknowledged = 1;
      const refused = await until('a refusal', async () => {
        const ran = await agent.run(['submit', '--terse', 'job.sub']);
        if (ran.code !== 0) return ran;
        acknowledged += 1;
        return undefined;
      });
      expect(refused).toMatchObject({ code: 74, stdout: '' });
      expect(refused.stderr).toMatch(/no space left (for the queue )?on the disk of .*\n {2}→ Free some space/);
      // It ends while its end cannot be recorded.
      writeFileSync(join(agent.work, 'go'), '');
      expect((await agent.run(['q'])).code).toBe(74);
      if (SLOW) await long();
      expect((await agent.run(['q'])).code).toBe(74);
      rmSync(join(agent.home, 'fat'));
      await wait(first);
      expect(agent.read('out')).toBe('done\n');
      for (let cluster = 2; cluster <= acknowledged; cluster++) await wait(cluster);
      expect(ledger()).toBe(acknowledged);
    },
    240_000 + LONG_MS,
  );

  const why = async (cluster: number) => agent.ok('why', String(cluster));

  it.skipIf(!SLOW)(
    'under the results on their way home: they stay at the site, it is said, and come with a release when there is space',
    async () => {
      agent = new TestAgent();
      agent.config('[gridmanager]\nretry_max = "2s"\n');
      agent.site('near', { url: 'local', batch: 'fork', more: `scratch = "${agent.dir}/near"\n` });
      agent.file('ledger', '');
      await agent.ok('up');
      const spool = disk(join(agent.home, 'state/spool'), '2m');
      const large = 'dd if=/dev/urandom of=large bs=100k count=4 2>dd; cksum <large >sum';
      const cluster = await job(`while [ ! -e ${agent.work}/go ]; do sleep 0.2; done; ${large}`, [
        'transfer_output_files = large, sum',
        'output = out',
      ]);
      await until('it to run', async () => (await agent.ads(cluster))[0]?.['JobStatus'] === 2 || undefined);
      fill(join(spool, 'fat'));
      writeFileSync(join(agent.work, 'go'), '');
      await until('that to be said', async () => /is nearly full|no space left/i.test(await why(cluster)) || undefined);
      await long();
      expect((await agent.ads(cluster))[0]?.['JobStatus']).toBe(5);
      expect(existsSync(join(agent.work, 'large'))).toBe(false);
      // Jobs without results go on meanwhile.
      await wait(await job('exit 0', ['transfer_output_files = ""']));
      rmSync(join(spool, 'fat'));
      await agent.ok('release', String(cluster));
      await wait(cluster);
      const sum = spawnSync('sh', ['-c', 'cksum <large'], { cwd: agent.work, encoding: 'utf8' }).stdout;
      expect(agent.read('sum')).toBe(sum);
      expect(ledger()).toBe(2);
    },
    300_000 + LONG_MS,
  );

  it.skipIf(!SLOW)(
    'at a site, by others: what runs there ends as it ends, what is to go there is held and says why',
    async () => {
      agent = new TestAgent();
      agent.config('[gridmanager]\nretry_max = "2s"\n');
      const scratch = disk(join(agent.dir, 'scratch'), '6m');
      agent.site('near', { url: 'local', batch: 'fork', more: `scratch = "${scratch}"\n` });
      agent.file('ledger', '');
      agent.file('input', 'x'.repeat(300_000));
      const first = await job(`while [ ! -e ${agent.work}/go ]; do sleep 0.2; done; exit 7`);
      await until('it to run', async () => (await agent.ads(first))[0]?.['JobStatus'] === 2 || undefined);
      fill(join(scratch, 'fat'));
      const next = await job('wc -c <input', ['transfer_input_files = input', 'output = counted']);
      await until('that to be said', async () => /no space left|disk.*full/i.test(await why(next)) || undefined);
      writeFileSync(join(agent.work, 'go'), '');
      await long();
      expect((await agent.ads(next))[0]?.['JobStatus']).toBe(5);
      rmSync(join(scratch, 'fat'));
      await wait(first);
      await agent.ok('release', String(next));
      await wait(next);
      expect((await agent.ads(first))[0]).toMatchObject({ JobStatus: 4, ExitCode: 7, NumJobStarts: 1 });
      expect((await agent.ads(next))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      expect(agent.read('counted').trim()).toBe('300000');
      expect(ledger()).toBe(2);
    },
    300_000 + LONG_MS,
  );

  it.skipIf(!SLOW)(
    'of the home directory, where jobs were submitted and plain processes have their records: no end is lost, and results come with a release',
    async () => {
      agent = new TestAgent();
      agent.config('[pool]\ncpus = 2\n[gridmanager]\nretry_max = "2s"\n');
      const home = disk(join(agent.dir, 'home'), '6m');
      mkdirSync(join(home, 'work'));
      const submit = async (name: string, where: string) => {
        // What a plain process writes there itself, the disk refuses.
        const write = name === 'pool' ? 'head -c 100000 /dev/zero' : 'true';
        const script = `echo ${name} >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.2; done; ${write}; exit 3`;
        const text = `${where}\nexecutable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = YES\nrequest_memory = 20M\narguments = "-c '${script}'"\ninitialdir = ${home}/work\noutput = ${name}.out\nlog = ${name}.log\nqueue\n`;
        return agent.submit(text);
      };
      const clusters = [
        await submit('pool', 'universe = vanilla'),
        await submit('plain', 'universe = grid\ngrid_resource = batch fork local'),
      ];
      await agent.ok('wait', '--until', 'start', '--timeout', '60', ...clusters.map(String));
      fill(join(home, 'fat'));
      agent.file('go', '');
      await long();
      const [pool = 0] = clusters;
      expect(await why(pool)).toContain(`There is no space for the output ${home}/work/pool.out (disk full)`);
      expect((await agent.ads(pool))[0]?.['JobStatus']).toBe(5);
      rmSync(join(home, 'fat'));
      await agent.ok('release', String(pool));
      await agent.ok('wait', '--no-outcome', '--timeout', '90', ...clusters.map(String));
      for (const cluster of clusters)
        expect((await agent.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 3, NumJobStarts: 1 });
      expect(statSync(join(home, 'work/pool.out')).size).toBe(100_000);
      for (const name of ['pool', 'plain'])
        expect(readFileSync(join(home, 'work', `${name}.log`), 'utf8').match(/^005 /gm)).toHaveLength(1);
      expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(['plain', 'pool']);
    },
    300_000 + LONG_MS,
  );
});
