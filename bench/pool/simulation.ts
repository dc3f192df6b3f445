import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { poolPlaces } from '../../src/pool/host/places.ts';
import { CentralManagerClient } from '../../src/pool/central-manager-client.ts';
import { Tokens } from '../../src/pool/wire/tokens.ts';
import { loadPaths } from '../../src/config/paths.ts';
import { TestAgent, until } from '../../test/agent/agent.ts';
import { killMatching, processesOf } from '../../test/agent/kill.ts';
import { type Ledger, SimWorker } from './sim-worker.ts';

/** Condor-G's record run: eight Condor pools, one PBS, one LSF, at most 1,007 workers, 95,000 CPU hours in seven days. */
const SITES = ['wisc', 'ncsa', 'anl', 'nwu', 'columbia', 'infn', 'gatech', 'unm', 'pbs', 'lsf'] as const;
const CPU_HOURS = 95_000;
const DAEMONS = [
  'redis-server',
  'dist[^ ]*/scheduler/main',
  'dist[^ ]*/gridmanager/main',
  'dist[^ ]*/pool/central-manager-main',
];

export interface SimulationResult {
  readonly workers: number;
  readonly jobs: number;
  /** Hours that one job represents. */
  readonly hoursEach: number;
  readonly wallSeconds: number;
  readonly lost: number;
  readonly doubled: number;
  /** Attempts that were started more than once. */
  readonly startedTwice: number;
  readonly deaths: number;
  readonly closings: number;
  readonly agentKilled: number;
  readonly agentCpuSeconds: number;
  readonly agentCpuMsPerJob: number;
  /** The peak of all daemons together, MB. */
  readonly agentMb: number;
}

export interface SimulationOptions {
  readonly workers: number;
  readonly jobs: number;
  /** Duration of a job here, seconds. */
  readonly seconds: number;
  readonly progress?: (message: string) => void;
}

/** Runs to completion: all jobs through workers that die, at sites that close, under an agent that is killed twice. */
export async function simulate({ workers, jobs, seconds, progress }: SimulationOptions): Promise<SimulationResult> {
  const agent = new TestAgent();
  agent.config(
    '[scheduler]\nperiodic_interval = "1s"\n[pool]\nlocal_worker = false\n[submit]\ndefault_site = "pool"\n',
  );
  const paths = loadPaths({ GRYPHUS_HOME: agent.home });
  const places = poolPlaces(paths);
  const tokens = new Tokens(places.dir);
  const ledger: Ledger = { starts: new Map(), ends: new Map() };
  const random = seeded(1007);
  const pilotTracker = new Map<string, SimWorker[]>(SITES.map((site) => [site, []]));
  const declareDead = new CentralManagerClient({
    socket: places.clientSocket,
    client: 'simulation',
    map: false,
    take: () => undefined,
    onLost: () => undefined,
  });
  let number = 0;
  let deaths = 0;
  let closings = 0;
  const hire = (site: string): void => {
    const token = tokens.issue({ site, local: false });
    const name = `${site}-${number++}`;
    const worker = new SimWorker(token, name, places.homeSocket, ledger, () => seconds * (0.5 + random()));
    pilotTracker.get(site)?.push(worker);
  };
  const dismiss = async (site: string, count: number): Promise<void> => {
    const gone = pilotTracker.get(site)?.splice(0, count) ?? [];
    for (const worker of gone) worker.die();
    for (const { token } of gone) {
      tokens.revoke(token.id);
      // As the agent learns of a pilot whose job has ended: repeated until the central manager has received it.
      await until('the central manager to hear of a death', () =>
        declareDead.ask({ t: 'worker-died', token: token.id, message: 'the simulated node died' }, 'done').then(
          () => true,
          () => undefined,
        ),
      );
    }
  };
  try {
    await agent.ok('up');
    agent.file('nothing.sh', '#!/bin/sh\n', 0o755);
    const began = performance.now();
    const cluster = await agent.submit(
      `executable = nothing.sh\nshould_transfer_files = YES\nmax_retries = 50\njob_lease_duration = 60\nqueue ${jobs}\n`,
    );
    for (let i = 0; i < workers; i++) hire(SITES[i % SITES.length] ?? 'wisc');
    const cpu = new Map<number, number>();
    let most = 0;
    const measure = (): void => {
      let kb = 0;
      for (const pid of DAEMONS.flatMap((message) => processesOf(message, agent))) {
        const seen = usage(pid);
        if (seen === undefined) continue;
        cpu.set(pid, seen.cpuSeconds);
        kb += seen.rssKb;
      }
      most = Math.max(most, kb);
    };
    let killed = 0;
    while (ledger.ends.size < jobs) {
      measure();
      const done = ledger.ends.size / jobs;
      progress?.(`${ledger.ends.size} of ${jobs} jobs ended, ${deaths} workers died`);
      if (killed < 2 && done > (killed + 1) / 3) {
        killed++;
        for (const message of DAEMONS) killMatching(message, agent);
        await agent.ok('up');
      }
      // Every few seconds a few workers die and others arrive; now and then a whole site closes and opens again.
      const site = SITES[Math.floor(random() * SITES.length)] ?? 'wisc';
      const there = pilotTracker.get(site)?.length ?? 0;
      const closes = random() < 0.03;
      const count = closes ? there : Math.min(there, 1 + Math.floor(random() * 3));
      await dismiss(site, count);
      if (closes) closings++;
      else deaths += count;
      for (let i = 0; i < count; i++) hire(site);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    await until(
      'the queue to hear of the last ends',
      async () => (await agent.run(['wait', '--timeout', '20', String(cluster)])).code === 0 || undefined,
      300_000,
    );
    measure();
    const completed = new Map<number, number>();
    for (const ad of JSON.parse(await agent.ok('history', '--json', String(cluster))) as Record<string, unknown>[]) {
      if (ad['JobStatus'] === 4) completed.set(Number(ad['ProcId']), (completed.get(Number(ad['ProcId'])) ?? 0) + 1);
    }
    const cpuSeconds = [...cpu.values()].reduce((sum, one) => sum + one, 0);
    return {
      workers,
      jobs,
      hoursEach: CPU_HOURS / jobs,
      wallSeconds: Math.round((performance.now() - began) / 1000),
      lost: jobs - completed.size,
      doubled: [...completed.values()].filter((times) => times > 1).length,
      startedTwice: [...ledger.starts.values()].filter((times) => times > 1).length,
      deaths,
      closings,
      agentKilled: killed,
      agentCpuSeconds: Math.round(cpuSeconds),
      agentCpuMsPerJob: Math.round((cpuSeconds / jobs) * 10_000) / 10,
      agentMb: Math.round(most / 1024),
    };
  } finally {
    for (const all of pilotTracker.values()) for (const worker of all) worker.die();
    await declareDead.close();
    await agent.end();
  }
}

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      workers: { type: 'string', default: '1007' },
      jobs: { type: 'string', default: '23750' },
      seconds: { type: 'string', default: '4' },
      json: { type: 'boolean' },
    },
  });
  const result = await simulate({
    workers: Number(values.workers),
    jobs: Number(values.jobs),
    seconds: Number(values.seconds),
    progress: (message) => process.stderr.write(`\r${message} `),
  });
  const lines = Object.entries(result).map(([name, value]) => `${name.padEnd(18)} ${String(value)}`);
  process.stdout.write(`${values.json ? JSON.stringify(result, undefined, 2) : lines.join('\n')}\n`);
}

/** Processor time and resident memory of a running process (proc(5)). */
function usage(pid: number): { readonly cpuSeconds: number; readonly rssKb: number } | undefined {
  try {
    const stat = readFileSync(join('/proc', String(pid), 'stat'), 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { cpuSeconds: (Number(fields[11]) + Number(fields[12])) / 100, rssKb: Number(fields[21]) * 4 };
  } catch {
    return undefined;
  }
}

/** Mulberry32: the same run again for the same seed, as far as the order of the jobs allows. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
