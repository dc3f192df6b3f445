import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { loadPaths } from '../../src/config/paths.ts';
import type { openQueue, Queue } from '../../src/queue/api.ts';
import { TestAgent, until } from '../../test/agent/agent.ts';
import { startSge } from '../../test/sites/sge.ts';
import { startSlurm } from '../../test/sites/slurm.ts';
import { startSshd, type Sshd } from '../../test/sites/sshd.ts';

interface Kind {
  readonly batch: string;
  start(): Promise<{ readonly env: Readonly<Record<string, string>>; stop(): Promise<void> }>;
  /** One submit of a job that does not start, as a user types it; and the same wish for our jobs. */
  readonly command: string;
  readonly waits: string;
}

const KINDS: Readonly<Record<string, Kind>> = {
  slurm: {
    batch: 'slurm',
    start: () => startSlurm({ nodes: 2, cpus: 4 }),
    command: 'sbatch --parsable --hold --output=/dev/null --wrap true',
    waits: '--hold',
  },
  sge: {
    batch: 'sge',
    start: () => startSge({ slots: 8 }),
    command: 'qsub -terse -h -b y -o /dev/null -e /dev/null true',
    waits: '-h',
  },
};

interface Row {
  readonly what: string;
  readonly ours: number;
  readonly theirs?: number;
  readonly unit: string;
}

/** Of the built program, to look into a queue without a command's start-up. */
interface Program {
  readonly loadPaths: typeof loadPaths;
  readonly openQueue: typeof openQueue;
}

export async function main(args: readonly string[], program: Program): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: 'boolean' },
      only: { type: 'string' },
      jobs: { type: 'string', default: '1000' },
      watch: { type: 'string', default: '30' },
    },
  });
  const rows: Row[] = [];
  for (const [name, kind] of Object.entries(KINDS)) {
    if (values.only === undefined || values.only === name)
      rows.push(...(await measure(program, name, kind, Number(values.jobs), Number(values.watch))));
  }
  if (values.json) process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`);
  else process.stdout.write(table(rows));
}

async function measure(program: Program, name: string, kind: Kind, jobs: number, watchSeconds: number): Promise<Row[]> {
  const agent = new TestAgent();
  const batch = await kind.start();
  const sshd = await startSshd();
  let queue: Queue | undefined;
  try {
    agent.env['HOME'] = sshd.clientHome;
    const prelude = Object.entries(batch.env)
      .map(([key, value]) => `export ${key}='${value}'`)
      .join('; ');
    const more = `[limits]\nqueued = 100000\nsubmits_per_minute = 1000000\n`;
    agent.site('cluster', { url: sshd.url, batch: kind.batch, prelude, more });
    await agent.ok('up');
    const { stateDir, socketDir } = program.loadPaths(agent.env);
    queue = await program.openQueue({ stateDir, socketDir, start: 'never' });
    const counted = queue;
    const committed = (count: number) => async (): Promise<true | undefined> =>
      (await counted.totals()).states.committed >= count || undefined;
    const job = (count: number): string =>
      [
        'universe = grid',
        `grid_resource = batch ${kind.batch} cluster`,
        'executable = /bin/true',
        'transfer_executable = false',
        `batch_extra_submit_args = ${kind.waits}`,
        `queue ${count}`,
      ].join('\n');
    await agent.submit(job(1));
    await until('the first to be there', committed(1), 120_000);
    const loopJobs = Math.min(200, jobs);
    const loop = loopSeconds(sshd, prelude, kind.command, loopJobs);
    const [cpuBefore, siteBefore] = [daemonCpu(agent), siteCpu(sshd)];
    const began = Date.now();
    await agent.submit(job(jobs));
    await until('all to be there', committed(jobs + 1), 600_000);
    const seconds = (Date.now() - began) / 1000;
    const cpu = ((daemonCpu(agent) - cpuBefore) * 1000) / jobs;
    const site = ((siteCpu(sshd) - siteBefore) * 1000) / jobs;
    const idleBefore = daemonCpu(agent);
    await new Promise((done) => setTimeout(done, watchSeconds * 1000));
    const watching = ((daemonCpu(agent) - idleBefore) / watchSeconds) * 100;
    return [
      { what: `${name}: submits a second, ${jobs} jobs`, ours: jobs / seconds, theirs: loopJobs / loop, unit: '1/s' },
      { what: `${name}: the agent's CPU for each submit`, ours: cpu, unit: 'ms' },
      { what: `${name}: our CPU at the site for each submit`, ours: site, unit: 'ms' },
      { what: `${name}: CPU while ${jobs} jobs wait there`, ours: watching, unit: '%' },
    ];
  } finally {
    await queue?.close();
    await agent.end();
    await sshd.stop();
    await batch.stop();
  }
}

function loopSeconds(sshd: Sshd, prelude: string, command: string, jobs: number): number {
  const began = Date.now();
  const loop = `${prelude}; i=0; while [ $i -lt ${jobs} ]; do ${command} >/dev/null || exit; i=$((i+1)); done`;
  const { hostname, port, username } = new URL(sshd.url);
  execFileSync('ssh', ['-F', sshd.sshConfigFile, '-i', sshd.keyFile, '-p', port, `${username}@${hostname}`, loop], {
    env: { ...process.env, HOME: sshd.clientHome },
  });
  return (Date.now() - began) / 1000;
}

/** CPU seconds of all of the agent's processes, user and system (proc(5)). */
function daemonCpu(agent: TestAgent): number {
  return cpuOf(
    (pid) =>
      readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`GRYPHUS_HOME=${agent.home}`) &&
      /main\.js|redis-server/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')),
  );
}

/** Of our shell at the site, and of what it has started and waited for. */
function siteCpu(sshd: Sshd): number {
  return cpuOf((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${sshd.home}/.gryphus/cluster`), true);
}

function cpuOf(wanted: (pid: string) => boolean, children = false): number {
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (!wanted(pid)) continue;
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number);
      ticks += (fields[11] ?? 0) + (fields[12] ?? 0);
      if (children) ticks += (fields[13] ?? 0) + (fields[14] ?? 0);
    } catch {
      // It ended meanwhile.
    }
  }
  return ticks / 100;
}

function table(rows: readonly Row[]): string {
  const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  const lines = rows.map(({ what, ours, theirs, unit }) => {
    const against = theirs === undefined ? ['', ''] : [`${number(theirs)} ${unit}`, number(ours / theirs)];
    return `| ${what} | ${number(ours)} ${unit} | ${against.join(' | ')} |`;
  });
  return `${['| work | Gryphus | its own loop | ratio |', '| --- | ---: | ---: | ---: |', ...lines].join('\n')}\n`;
}
