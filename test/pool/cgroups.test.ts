import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { ownGroups, type OwnGroups } from '../../src/pool/worker/cgroup-places.ts';
import { Cgroups } from '../../src/pool/worker/cgroups.ts';
import { Containers } from '../../src/pool/worker/containers.ts';
import { Startd } from '../../src/pool/worker/startd.ts';
import type { FromWorker } from '../../src/pool/wire/wire.ts';
import type { Ending } from '../../src/site/contract.ts';
import { until } from '../agent/agent.ts';
import { SCRIPTS } from './scripts.ts';

const SIZE = { cpus: 4, memoryMb: 4000, diskKb: 1e6, gpus: 0 };

/** Control groups of this machine in which root may create others, by their kind. */
function places(): (readonly [string, OwnGroups])[] {
  if (process.getuid?.() !== 0) return [];
  const { unified, first } = ownGroups('0::/\n1:memory:/\n2:cpu,cpuacct:/\n3:cpuacct:/\n4:freezer:/', mounts());
  return [
    ...(first.memory === undefined ? [] : [['of the first generation', { unified: undefined, first }] as const]),
    ...(unified === undefined
      ? []
      : [
          [
            `of the second generation${hasMemory(unified) ? '' : ' without controllers'}`,
            { unified, first: {} },
          ] as const,
        ]),
  ];
}

function mounts(): string {
  return readFileSync('/proc/self/mountinfo', 'utf8');
}

function hasMemory(unified: string): boolean {
  return readFileSync(join(unified, 'cgroup.controllers'), 'utf8').includes('memory');
}

describe.each(places())('control groups %s', (_, roots) => {
  let dir: string;
  let groups: Cgroups;
  let startd: Startd;
  let said: FromWorker[];
  let own: OwnGroups;
  let count = 0;
  const limits = roots.first.memory !== undefined || hasMemory(roots.unified ?? '');
  const each = ({ unified, first }: OwnGroups) => [
    ...Object.values(first),
    ...(unified === undefined ? [] : [unified]),
  ];

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'gryphus groups '));
    const inside = (root: string) => join(root, `gryphus-test-${process.pid}`);
    own = {
      unified: roots.unified && inside(roots.unified),
      first: Object.fromEntries(Object.entries(roots.first).map(([name, root]) => [name, inside(root)])),
    };
    if (roots.unified !== undefined && limits)
      writeFileSync(join(roots.unified, 'cgroup.subtree_control'), '+memory +cpu');
    for (const one of each(own)) if (!existsSync(one)) mkdirSync(one);
    startd = worker();
  });
  afterEach(async () => {
    await until('the end of all groups', () => left().length === 0 || undefined);
    startd.close();
    groups.close();
    for (const one of each(own)) rmdirSync(one);
    rmSync(dir, { recursive: true, force: true });
  });

  function worker(): Startd {
    const news: FromWorker[] = [];
    said = news;
    const opened = Cgroups.open({ policy: 'always', name: 'gryphus-w', limitMemory: true, own, pid: 0x7fffffff });
    if (!opened) throw new Error('no groups');
    groups = opened;
    const made = new Startd({
      dir,
      machine: { size: SIZE, ad: { Requirements: 'true' }, limitMemory: true },
      env: { PATH: process.env['PATH'] },
      scripts: SCRIPTS,
      sharesHome: true,
      containers: new Containers({ dir, env: {}, environment: {}, log: () => undefined }),
      groups,
      proxyOf: (name) => join(dir, name),
      pull: () => () => Promise.reject(new Error('nothing is to be fetched')),
      say: (message) => news.push(message),
      log: () => undefined,
    });
    made.take({ t: 'kind', id: 'k', ad: { Requirements: 'true' } });
    return made;
  }

  function start(script: string) {
    const key: AttemptKey = `a-${process.pid}.${++count}.0.1`;
    const executable = { kind: 'there', path: '/bin/sh' } as const;
    const args = ['-c', script];
    const spec = { executable, args, env: {}, inputs: [], joinStderr: false, vacateSeconds: 1 };
    const size = { cpus: 1, memoryMb: 60, diskKb: 0, gpus: 0 };
    startd.take({ t: 'start', key, claim: key, kind: 'k', size, spec, lease: 60 });
    const path = join(dir, 'jobs', key);
    return {
      key,
      work: join(path, 'work'),
      out: () => (existsSync(join(path, 'stdout')) ? readFileSync(join(path, 'stdout'), 'utf8') : ''),
      end: (): Promise<Ending> =>
        until(`the end of ${key}`, () => {
          const news = said.find((message) => message.t === 'ended' && message.key === key);
          return news?.t === 'ended' ? news.ending : undefined;
        }),
    };
  }

  /** Leaves its session and keeps nothing by which it could be recognized. */
  const AWAY = `env -i setsid /bin/sh -c 'trap "" TERM; echo $$ >away; exec /bin/sleep 600' & while ! [ -s away ]; do :; done`;
  const away = (work: string) =>
    until('what forked away', () => {
      const path = join(work, 'away');
      return (existsSync(path) && Number(readFileSync(path, 'utf8'))) || undefined;
    });
  const lives = (pid: number) =>
    existsSync(`/proc/${pid}`) && !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  const left = () =>
    each(own).flatMap((one) =>
      readdirSync(join(one, 'gryphus-w'), { withFileTypes: true }).filter((entry) => entry.isDirectory()),
    );

  it('are said in the ad of the machine', () => {
    const ad = groups.ad();
    expect(ad['CgroupVersion']).toBe(roots.unified === undefined ? '1' : '2');
    expect(ad['GryphusCgroups']).toBe(limits ? '"memory cpu freezer"' : '"freezer"');
    expect(ad['CgroupMemoryLimitPolicy']).toBe(limits ? '"hard"' : undefined);
  });

  it('hold what forks away: it ends with its job, and the group with it', async () => {
    const job = start(AWAY);
    expect((await job.end()).how).toEqual({ kind: 'exited', code: 0 });
    const pid = Number(readFileSync(join(job.work, 'away'), 'utf8'));
    await until('its end', () => !lives(pid) || undefined);
  }, 30_000);

  it('end all of a job that is to end, also when another worker found it', async () => {
    const job = start(`${AWAY}; trap '' TERM; while :; do sleep 1; done`);
    const pid = await away(job.work);
    startd.close();
    startd = worker();
    startd.take({ t: 'cancel', key: job.key, how: 'remove', message: 'over' });
    expect((await job.end()).how).toMatchObject({ kind: 'by-site', cause: 'cancelled' });
    expect(lives(pid)).toBe(false);
  }, 30_000);

  it('stop all of a job, and continue it; a stopped one ends when it is asked to', async () => {
    const job = start('while :; do echo x; sleep 0.02; done');
    const grown = (from: number) => until('output', () => job.out().length > from || undefined);
    await grown(0);
    startd.take({ t: 'suspend', key: job.key });
    // cgroup v1 takes a moment.
    await until('it to stand still', async () => {
      const before = job.out().length;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return job.out().length === before || undefined;
    });
    startd.take({ t: 'resume', key: job.key });
    await grown(job.out().length);
    startd.take({ t: 'suspend', key: job.key });
    startd.take({ t: 'cancel', key: job.key, how: 'vacate', message: 'away' });
    expect((await job.end()).how).toMatchObject({ cause: 'preempted' });
  }, 30_000);

  it('count the processor time of all that ran', async () => {
    const burn = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done';
    const job = start(`env -i setsid /bin/sh -c '${burn}; echo done >away' & while ! [ -s away ]; do sleep 0.05; done`);
    const { usage } = await job.end();
    expect((usage?.userCpuSeconds ?? 0) + (usage?.systemCpuSeconds ?? 0)).toBeGreaterThan(0.03);
    if (limits) expect(usage?.maxRssKb).toBeGreaterThan(100);
  }, 30_000);

  it.skipIf(!limits)(
    'keep a job to its memory: it is ended, and the reason is reported',
    async () => {
      const job = start('head -c 100000000 /dev/zero | env -i sort -S 200M >/dev/null; sleep 600');
      const { how, usage } = await job.end();
      expect(how).toEqual({ kind: 'by-site', cause: 'out-of-memory', message: 'it used all of its 60 MB' });
      expect(usage?.maxRssKb).toBeLessThanOrEqual(60 * 1024);
    },
    30_000,
  );

  it.skipIf(roots.unified === undefined || !limits)(
    'have controllers if the worker was alone in its group, and it goes aside',
    async () => {
      const unified = join(own.unified ?? '', 'scope');
      mkdirSync(unified);
      const sleepers = [1, 2].map(() => spawn('sleep', ['600'], { stdio: 'ignore' }));
      const [pid = 0, other = 0] = sleepers.map((one) => one.pid ?? 0);
      const open = () => {
        const made = Cgroups.open({ policy: 'auto', name: 'w', limitMemory: true, own: { unified, first: {} }, pid });
        return made?.ad()['GryphusCgroups'];
      };
      const inside = () =>
        readFileSync(`/proc/${pid}/cgroup`, 'utf8')
          .trim()
          .replace(/.*\/scope/, '');
      try {
        for (const one of [pid, other]) writeFileSync(join(unified, 'cgroup.procs'), String(one));
        expect(open()).toBe('"freezer"');
        expect(inside()).toBe('');
        const ended = new Promise((resolve) => sleepers[1]?.once('exit', resolve));
        process.kill(other, 'SIGKILL');
        await ended;
        expect(open()).toBe('"memory cpu freezer"');
        expect(inside()).toBe('/w/worker');
      } finally {
        const ends = sleepers
          .filter((one) => one.exitCode === null && one.signalCode === null)
          .map((one) => new Promise((resolve) => one.once('exit', resolve)));
        for (const one of sleepers) one.kill('SIGKILL');
        await Promise.all(ends);
        for (const name of ['w/worker', 'w', '']) if (existsSync(join(unified, name))) rmdirSync(join(unified, name));
      }
    },
  );
});

describe('the groups of a process', () => {
  it('are found where their hierarchies are mounted', () => {
    const mountinfo = [
      '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct',
      '35 31 0:32 / /sys/fs/cgroup/the\\040memory rw shared:9 - cgroup cgroup rw,memory',
      '41 31 0:38 /user.slice /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate',
    ].join('\n');
    const self = '5:cpu,cpuacct:/a\n4:memory:/b/c\n1:name=systemd:/x\n0::/user.slice/s.scope\n';
    expect(ownGroups(self, mountinfo)).toEqual({
      unified: '/sys/fs/cgroup/unified/s.scope',
      first: {
        cpu: '/sys/fs/cgroup/cpu,cpuacct/a',
        cpuacct: '/sys/fs/cgroup/cpu,cpuacct/a',
        memory: '/sys/fs/cgroup/the memory/b/c',
      },
    });
    expect(ownGroups('0::/other', mountinfo)).toEqual({ unified: undefined, first: {} });
    expect(ownGroups('', '')).toEqual({ unified: undefined, first: {} });
  });

  it('are none where nothing may be made', () => {
    const own = { unified: '/proc', first: {} };
    expect(Cgroups.open({ policy: 'auto', name: 'gryphus-w', limitMemory: true, own })).toBeUndefined();
    expect(Cgroups.open({ policy: 'never', name: 'gryphus-w', limitMemory: true })).toBeUndefined();
  });
});
