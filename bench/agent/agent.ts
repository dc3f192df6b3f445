import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { loadPaths } from '../../src/config/paths.ts';
import type { openQueue, Queue } from '../../src/queue/api.ts';
import { CLI, TestAgent, until } from '../../test/agent/agent.ts';
import { startTarget, type Target } from '../../test/crash/sites.ts';
import { daemonCpu, siteCpu } from '../cpu.ts';

interface Row {
  readonly what: string;
  readonly ours: number;
  readonly theirs?: number;
  readonly unit: string;
  /** Ours relative to theirs; above 1 is faster for rates, slower for times. */
  readonly ratio?: number;
}

/** From the built program, to inspect a queue without a command's start-up time. */
interface Program {
  readonly loadPaths: typeof loadPaths;
  readonly openQueue: typeof openQueue;
}

const BENCHES: Readonly<Record<string, (program: Program, jobs: readonly number[]) => Promise<Row[]>>> = {
  submit: benchSubmit,
  slurm: benchSlurm,
  latency: benchLatency,
  start: benchStart,
  pi: benchPi,
  idle: benchIdle,
};

export async function main(args: readonly string[], program: Program): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { json: { type: 'boolean' }, only: { type: 'string' }, jobs: { type: 'string', default: '200,1000' } },
  });
  const jobs = values.jobs.split(',').map(Number);
  const rows: Row[] = [];
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (values.only === undefined || values.only === name) rows.push(...(await bench(program, jobs)));
  }
  if (values.json) process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`);
  else process.stdout.write(table(rows));
}

/** `gryphus submit` of 10,000 procs with different arguments; HTCondor 25.14 took 2.8 to 4.4 s on a similar machine. */
async function benchSubmit(): Promise<Row[]> {
  const agent = new TestAgent();
  try {
    await agent.ok('up');
    agent.file('hold.sub', 'executable = /bin/true\narguments = $(Process)\nhold = true\nqueue 10000\n');
    const began = Date.now();
    await agent.ok('submit', '--terse', 'hold.sub');
    const seconds = (Date.now() - began) / 1000;
    const list = Date.now();
    await agent.ok('q', '--nobatch');
    const listed = (Date.now() - list) / 1000;
    return [
      { what: 'gryphus submit of 10,000, on disk', ours: seconds, theirs: 2.8, unit: 's', ratio: seconds / 2.8 },
      { what: 'gryphus q --nobatch over 10,000', ours: listed, theirs: 0.17, unit: 's', ratio: listed / 0.17 },
    ];
  } finally {
    await agent.end();
  }
}

/** Through a real Slurm over ssh, compared with a loop of sbatch at the site, and with Slurm alone until the end. */
async function benchSlurm(program: Program, counts: readonly number[]): Promise<Row[]> {
  const agent = new TestAgent();
  const target = await startTarget('slurm, ssh', agent);
  const rows: Row[] = [];
  let queue: Queue | undefined;
  try {
    await agent.ok('up');
    queue = await queueOf(program, agent);
    const opened = queue;
    await warmUp(agent, target);
    for (const jobs of counts) {
      const loop = sbatchLoop(target, jobs);
      const alone = loop.seconds + (await drained(target));
      const [cpuBefore, siteBefore] = [daemonCpu(agent), siteCpu(target.siteDir)];
      const began = Date.now();
      const cluster = await agent.submit(jobFile(target, jobs, 'true'));
      await until('all to be submitted', () => areSubmitted(opened), 300_000);
      const submitted = (Date.now() - began) / 1000;
      await agent.ok('wait', '--timeout', '900', String(cluster));
      const home = (Date.now() - began) / 1000;
      const cpu = ((daemonCpu(agent) - cpuBefore) * 1000) / jobs;
      const site = ((siteCpu(target.siteDir) - siteBefore) * 1000) / jobs;
      rows.push(
        {
          what: `${jobs} jobs: submits a second`,
          ours: jobs / submitted,
          theirs: jobs / loop.seconds,
          unit: '1/s',
          ratio: jobs / submitted / (jobs / loop.seconds),
        },
        { what: `${jobs} jobs: submit to result home`, ours: home, theirs: alone, unit: 's', ratio: home / alone },
        { what: `${jobs} jobs: the agent's CPU for each`, ours: cpu, theirs: 46, unit: 'ms', ratio: cpu / 46 },
        { what: `${jobs} jobs: our CPU at the site for each, without its wrapper`, ours: site, unit: 'ms' },
      );
    }
    return rows;
  } finally {
    await queue?.close();
    await agent.end();
    await target.stop();
  }
}

/** From submit to running on an idle local site, against sbatch on an idle Slurm. */
async function benchLatency(): Promise<Row[]> {
  const agent = new TestAgent();
  const target = await startTarget('slurm, ssh', agent);
  try {
    await agent.ok('up');
    const stamp = join(agent.work, 'stamp');
    const script = agent.file('stamp.sh', `#!/bin/sh\ndate +%s%N > "$1"\n`, 0o755);
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let i = 0; i < 7; i++) {
      const began = Date.now();
      agent.file('l.sub', `executable = stamp.sh\narguments = ${stamp}.${i}\nqueue\n`);
      await agent.ok('submit', '--terse', 'l.sub');
      ours.push((await stampOf(`${stamp}.${i}`)) - began);
      const sbatch = Date.now();
      target.slurm?.run('sbatch', '--parsable', '--output=/dev/null', script, `${stamp}.s${i}`);
      theirs.push((await stampOf(`${stamp}.s${i}`)) - sbatch);
    }
    return [
      {
        what: 'submit to running, idle site (median)',
        ours: median(ours),
        theirs: median(theirs),
        unit: 'ms',
        ratio: median(ours) / median(theirs),
      },
    ];
  } finally {
    await agent.end();
    await target.stop();
  }
}

const LOCAL = 'universe = grid\ngrid_resource = batch fork local\n';

/**
 * From the return of a submit through the API to the start of the program, in the idle pool and at the idle local fork
 * site.
 */
async function benchStart(): Promise<Row[]> {
  const agent = new TestAgent();
  const { Gryphus } = (await import(join(CLI, '../../index.js'))) as typeof import('../../src/index.ts');
  await agent.ok('up');
  const gryphus = await Gryphus.open({ home: agent.home });
  try {
    agent.file('stamp.sh', `#!/bin/sh\ndate +%s%N > "$1"\n`, 0o755);
    const times: Record<'pool' | 'local', number[]> = { pool: [], local: [] };
    for (let i = -2; i < 15; i++) {
      for (const [where, more] of [
        ['pool', ''],
        ['local', LOCAL],
      ] as const) {
        const stamp = join(agent.work, `stamp.${where}.${i}`);
        const text = `${more}executable = stamp.sh\narguments = ${stamp}\ntransfer_executable = false\nqueue\n`;
        const { cluster } = await gryphus.submit({ text, cwd: agent.work });
        const began = Date.now();
        const started = await stampOf(stamp);
        if (i >= 0) times[where].push(started - began);
        await gryphus.wait({ clusters: [cluster] });
      }
    }
    const [ours, theirs] = [median(times.pool), median(times.local)];
    const what = 'return of a submit to the start, idle pool against idle local site (median of 15)';
    return [{ what, ours, theirs, unit: 'ms', ratio: ours / theirs }];
  } finally {
    await gryphus.close();
    await agent.end();
  }
}

/**
 * The 200 jobs of examples/pi, from the submit in a running agent to the last result at home: pool against fork site.
 */
async function benchPi(): Promise<Row[]> {
  const seconds: number[] = [];
  for (const site of ['pool', 'local']) {
    const agent = new TestAgent();
    try {
      agent.config(`submit.default_site = "${site}"\n`);
      cpSync(join(CLI, '../../../examples/pi'), agent.work, { recursive: true });
      mkdirSync(join(agent.work, 'results'), { recursive: true });
      await agent.ok('up');
      const began = Date.now();
      await agent.ok('submit', '--wait', 'pi.sub');
      seconds.push((Date.now() - began) / 1000);
    } finally {
      await agent.end();
    }
  }
  const [ours = Number.NaN, theirs = Number.NaN] = seconds;
  return [
    { what: 'the 200 jobs of examples/pi: pool against local site', ours, theirs, unit: 's', ratio: ours / theirs },
  ];
}

/** The agent's CPU time while 10,000 jobs are idle at a site: a fork site whose only slot is taken. */
async function benchIdle(program: Program): Promise<Row[]> {
  const agent = new TestAgent();
  const target = await startTarget('fork, ssh', agent);
  agent.site('there', { url: target.sshd?.url ?? '', batch: 'fork', more: '[limits]\nrunning = 1\n' });
  try {
    await agent.ok('up');
    agent.file(
      'idle.sub',
      `universe = grid\ngrid_resource = ${target.resource}\nexecutable = /bin/sleep\narguments = 3600\ntransfer_executable = false\nqueue 10000\n`,
    );
    await agent.ok('submit', '--terse', 'idle.sub');
    const queue = await queueOf(program, agent);
    await until('all to be at the site', () => areSubmitted(queue), 600_000);
    await queue.close();
    await new Promise((done) => setTimeout(done, 30_000));
    const before = daemonCpu(agent);
    await new Promise((done) => setTimeout(done, 60_000));
    const percent = ((daemonCpu(agent) - before) / 60) * 100;
    return [{ what: 'CPU while 10,000 jobs idle at a site', ours: percent, unit: '%' }];
  } finally {
    await agent.run(['rm', '--all']);
    await agent.end();
    await target.stop();
  }
}

function jobFile(target: Target, jobs: number, program: string): string {
  return [
    'universe = grid',
    `grid_resource = ${target.resource}`,
    `executable = /bin/${program}`,
    'transfer_executable = false',
    `queue ${jobs}`,
  ].join('\n');
}

async function warmUp(agent: TestAgent, target: Target): Promise<void> {
  const cluster = await agent.submit(jobFile(target, 2, 'true'));
  await agent.ok('wait', '--timeout', '120', String(cluster));
}

function sbatchLoop(target: Target, jobs: number): { readonly seconds: number } {
  const began = Date.now();
  execFileSync(
    'sh',
    [
      '-c',
      `i=0; while [ $i -lt ${jobs} ]; do sbatch --parsable --output=/dev/null --wrap true >/dev/null; i=$((i+1)); done`,
    ],
    {
      env: { ...process.env, ...target.slurm?.env },
    },
  );
  return { seconds: (Date.now() - began) / 1000 };
}

/** Seconds until Slurm's queue is empty. */
async function drained(target: Target): Promise<number> {
  const began = Date.now();
  await until(
    'Slurm to finish',
    () => target.slurm?.run('squeue', '-h', '-t', 'PD,R,CG').trim() === '' || undefined,
    900_000,
  );
  return (Date.now() - began) / 1000;
}

function queueOf({ loadPaths: paths, openQueue: open }: Program, agent: TestAgent): Promise<Queue> {
  const { stateDir, socketDir } = paths(agent.env);
  return open({ stateDir, socketDir, start: 'never' });
}

/** No job waits here any more. */
async function areSubmitted(queue: Queue): Promise<true | undefined> {
  const { states } = await queue.totals();
  return states.idle + states.preparing + states.prepared > 0 ? undefined : true;
}

async function stampOf(file: string): Promise<number> {
  return until(`the job that writes ${file}`, () => {
    try {
      const text = readFileSync(file, 'utf8').trim();
      return text === '' ? undefined : Number(BigInt(text) / 1_000_000n);
    } catch {
      return undefined;
    }
  });
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function table(rows: readonly Row[]): string {
  const number = (value: number | undefined) =>
    value === undefined ? '' : value >= 100 ? value.toFixed(0) : value.toPrecision(3);
  const lines = rows.map(
    (row) =>
      `| ${row.what} | ${number(row.ours)} ${row.unit} | ${row.theirs === undefined ? '' : `${number(row.theirs)} ${row.unit}`} | ${number(row.ratio)} |`,
  );
  return `${['| work | Gryphus | against | ratio |', '| --- | ---: | ---: | ---: |', ...lines].join('\n')}\n`;
}
