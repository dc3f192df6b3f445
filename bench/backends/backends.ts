import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { loadPaths } from '../../src/config/paths.ts';
import type { openQueue, Queue } from '../../src/queue/api.ts';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { TestAgent, until } from '../../test/agent/agent.ts';
import { letIn } from '../../test/sites/ordinary-user.ts';
import { startSshd, type Sshd } from '../../test/sites/sshd.ts';
import { answeringCpu, daemonCpu, processCpu, siteCpu } from '../cpu.ts';
import { type Batch, type System, SYSTEMS } from './systems.ts';

interface Row {
  readonly what: string;
  readonly ours: number;
  readonly theirs?: number;
  readonly unit: string;
}

/** From the built program, to inspect a queue without a command's start-up time. */
interface Program {
  readonly loadPaths: typeof loadPaths;
  readonly openQueue: typeof openQueue;
}

interface Sizes {
  /** Jobs that are put into the queue. */
  readonly jobs: number;
  /** Seconds that they are watched, and seconds between two polls. */
  readonly watch: number;
  readonly every: number;
}

export async function main(args: readonly string[], program: Program): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      json: { type: 'boolean' },
      only: { type: 'string' },
      jobs: { type: 'string', default: '10000' },
      watch: { type: 'string', default: '60' },
      every: { type: 'string', default: '10' },
    },
  });
  const names = values.only?.split(',') ?? Object.keys(SYSTEMS);
  const rows: Row[] = [];
  for (const name of names) {
    const system = SYSTEMS[name];
    if (system === undefined) throw new Error(`--only ${name}: there are ${Object.keys(SYSTEMS).join(', ')}`);
    const jobs = Math.min(Number(values.jobs), system.most ?? Number.POSITIVE_INFINITY);
    rows.push(
      ...(await measure(program, name, system, { jobs, watch: Number(values.watch), every: Number(values.every) })),
    );
  }
  if (values.json) process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`);
  else process.stdout.write(table(rows));
}

/** The directory in which one system is measured. */
interface Place {
  readonly agent: TestAgent;
  readonly batch: Batch;
  readonly system: System;
  readonly sshd: Sshd;
  /** Shell lines that make the system's commands work. */
  readonly prelude: string;
}

async function measure(program: Program, name: string, system: System, sizes: Sizes): Promise<Row[]> {
  const agent = new TestAgent();
  const batch = await system.start();
  const sshd = await startSshd({ as: batch.user });
  let queue: Queue | undefined;
  try {
    agent.env['HOME'] = sshd.clientHome;
    const prelude = Object.entries(batch.env)
      .map(([variable, value]) => `export ${variable}=${shellQuote(value)}`)
      .join('; ');
    const place = { agent, batch, system, sshd, prelude };
    const calls = countCalls(place);
    letIn(batch.user, agent.dir, calls.bin);
    const { every, jobs } = sizes;
    const backoff = `queued = 100000\nsubmits_per_minute = 1000000\npoll_min = "${every}s"\npoll_max = "${every}s"\n`;
    const ours = `${prelude}; PATH=${shellQuote(calls.bin)}:$PATH`;
    agent.site('cluster', { url: sshd.url, batch: name, prelude: ours, more: `[limits]\n${backoff}` });
    await agent.ok('up');
    const { stateDir, socketDir } = program.loadPaths(agent.env);
    queue = await program.openQueue({ stateDir, socketDir, start: 'never' });
    const opened = queue;
    const submit = async (count: number, committed: number): Promise<void> => {
      await agent.submit(jobFile(name, system, count));
      const there = async () => (await opened.totals()).states.committed >= committed || undefined;
      await until('all to be there', there, 600_000);
    };
    await submit(1, 1);
    const loopJobs = Math.min(200, jobs);
    const loop = submitLoop(place, loopJobs);
    const before = spent(place);
    await submit(jobs, jobs + 1);
    const submitted = minus(spent(place), before);
    const watched = await watch(place, calls, sizes);
    const row = (what: string, unit: string, our: number, their?: number): Row => ({
      what: `${name}: ${what}`,
      ours: our,
      unit,
      ...(their === undefined ? {} : { theirs: their }),
    });
    const { mine, user } = watched;
    const percent = (seconds: number): number => (seconds / sizes.watch) * 100;
    return [
      row(`submits a second, ${jobs} jobs`, '1/s', jobs / submitted.wall, loopJobs / loop),
      row("the agent's CPU for each submit", 'ms', (submitted.agent * 1000) / jobs),
      row('our CPU at the site for each submit', 'ms', (submitted.site * 1000) / jobs),
      row(`the agent's CPU while ${jobs} wait there`, '%', percent(mine.agent)),
      row('looks at the queue a minute', '', (watched.looks * 60) / sizes.watch, (user.queries * 60) / sizes.watch),
      row('its commands that these call, a minute', '', (watched.calls * 60) / sizes.watch),
      row(
        'CPU at the site for each look',
        'ms',
        (mine.answering * 1000) / watched.looks,
        (user.cpu * 1000) / user.queries,
      ),
      row('CPU of all of ours at the site meanwhile', '%', percent(mine.site), percent(user.cpu)),
      row("CPU of the batch system's server meanwhile", '%', percent(mine.server), percent(user.server)),
    ];
  } finally {
    await queue?.close();
    await agent.end();
    await sshd.stop();
    await batch.stop();
  }
}

function jobFile(name: string, system: System, count: number): string {
  return [
    'universe = grid',
    `grid_resource = batch ${name} cluster`,
    'executable = /bin/true',
    'transfer_executable = false',
    `batch_extra_submit_args = ${system.waits}`,
    `queue ${count}`,
  ].join('\n');
}

/**
 * Seconds of CPU: the agent, all of our processes at the site, the shell there that answers, the batch system's server.
 */
interface Spent {
  readonly wall: number;
  readonly agent: number;
  readonly site: number;
  readonly answering: number;
  readonly server: number;
}

function spent({ agent, batch, sshd }: Place): Spent {
  const siteDir = join(sshd.home, '.gryphus/cluster');
  return {
    wall: performance.now() / 1000,
    agent: daemonCpu(agent),
    site: siteCpu(siteDir),
    answering: answeringCpu(siteDir),
    server: serverCpu(batch),
  };
}

function minus(after: Spent, before: Spent): Spent {
  return {
    wall: after.wall - before.wall,
    agent: after.agent - before.agent,
    site: after.site - before.site,
    answering: after.answering - before.answering,
    server: after.server - before.server,
  };
}

function serverCpu({ pidFiles }: Batch): number {
  return pidFiles.reduce((sum, file) => sum + processCpu(Number(readFileSync(file, 'utf8').trim())), 0);
}

/** The same queue, watched by Gryphus and then by a user with the system's own command, equally often. */
async function watch(place: Place, calls: Calls, sizes: Sizes) {
  // The poll that the submit triggered is over.
  await delay(sizes.every * 1000);
  const [before, callsBefore] = [spent(place), calls.count()];
  await delay(sizes.watch * 1000);
  const mine = minus(spent(place), before);
  const called = calls.count();
  const serverBefore = serverCpu(place.batch);
  const user = queryLoop(place, Math.max(1, Math.floor(sizes.watch / sizes.every)), sizes.every);
  return {
    mine,
    looks: called.looks - callsBefore.looks,
    calls: called.all - callsBefore.all,
    user: { ...user, server: serverCpu(place.batch) - serverBefore },
  };
}

interface Calls {
  readonly bin: string;
  /** Polls of the queue, and all calls of the command for it. */
  count(): { readonly looks: number; readonly all: number };
}

/** Commands placed first in PATH, which count the calls of the commands that they replace. */
function countCalls({ agent, batch, system }: Pick<Place, 'agent' | 'batch' | 'system'>): Calls {
  const bin = join(agent.dir, 'counted');
  const log = join(bin, 'calls');
  mkdirSync(bin);
  const name = system.query.split(' ')[0] ?? '';
  const env = { ...process.env, ...batch.env };
  const real = execFileSync('sh', ['-c', `command -v ${name}`], { env, encoding: 'utf8' }).trim();
  writeFileSync(
    join(bin, name),
    `#!/bin/sh\nprintf '%s\\n' "$*" >>${shellQuote(log)}\nexec ${shellQuote(real)} "$@"\n`,
  );
  chmodSync(join(bin, name), 0o755);
  return {
    bin,
    count: () => {
      const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
      return { looks: lines.filter((line) => system.isLook?.test(line) ?? true).length, all: lines.length };
    },
  };
}

/** Seconds for this many submits, one after another. */
function submitLoop(place: Place, jobs: number): number {
  const began = performance.now();
  const loop = `i=0; while [ $i -lt ${jobs} ]; do ${place.system.submit} >/dev/null || exit; i=$((i+1)); done`;
  atSite(place, `printf '#!/bin/sh\\ntrue\\n' >job.sh; ${loop}`);
  return (performance.now() - began) / 1000;
}

/** CPU seconds of this many queries, with pauses between them as in `watch`. */
function queryLoop(place: Place, queries: number, every: number): { readonly queries: number; readonly cpu: number } {
  const loop = `i=0; while [ $i -lt ${queries} ]; do ${place.system.query} >/dev/null || :; sleep ${every}; i=$((i+1)); done; times`;
  const times = [...atSite(place, loop).matchAll(/(\d+)m([\d.]+)s/g)].map(([, m, s]) => Number(m) * 60 + Number(s));
  return { queries, cpu: times.reduce((sum, seconds) => sum + seconds, 0) };
}

function atSite({ sshd, prelude }: Place, command: string): string {
  const { hostname, port, username } = new URL(sshd.url);
  const ssh = ['-F', sshd.sshConfigFile, '-i', sshd.keyFile, '-p', port, `${username}@${hostname}`];
  return execFileSync('ssh', [...ssh, `${prelude}; ${command}`], {
    env: { ...process.env, HOME: sshd.clientHome },
    encoding: 'utf8',
  });
}

function table(rows: readonly Row[]): string {
  const number = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  const lines = rows.map(({ what, ours, theirs, unit }) => {
    const against =
      theirs === undefined ? ['', ''] : [`${number(theirs)} ${unit}`, theirs === 0 ? '' : number(ours / theirs)];
    return `| ${what} | ${number(ours)} ${unit} | ${against.join(' | ')} |`;
  });
  return `${['| work | Gryphus | its own commands | ratio |', '| --- | ---: | ---: | ---: |', ...lines].join('\n')}\n`;
}
