/**
 * The dedicated scheduler: how long a grant of 64 workers takes with its journal in memory, and how well machines are
 * used, beside plain FIFO, over the same random mix of parallel and serial jobs whose run times are known.
 */
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import { recover } from '../../src/pool/central-manager/central-manager-journal.ts';
import { plan, type Wish } from '../../src/pool/central-manager/gangs/dedicated.ts';
import { type Machine, spare } from '../../src/pool/central-manager/gangs/machines.ts';
import { SHARING_RULES } from '../../src/pool/central-manager/sharing-rules.ts';
import { minus } from '../../src/pool/wire/slots.ts';
import type { FromCentralManager, Size } from '../../src/pool/wire/wire.ts';

const WORKERS = 64;
const MACHINES = 16;
const CORES = 4;
const JOBS = 1500;
/** The share of parallel jobs. */
const PARALLEL = 0.05;

const cores = (cpus: number): Size => ({ cpus, memoryMb: cpus, diskKb: cpus, gpus: 0 });

/** Milliseconds from the commit until all workers have been told what to prepare. */
async function grant(): Promise<number> {
  let told = 0;
  let done: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    done = resolve;
  });
  const manager = new CentralManager(
    {
      journal: { add: () => undefined, whenSaved: (call) => call() },
      toWorker: (_: string, { t }: FromCentralManager) => {
        if (t === 'start' && ++told === WORKERS) done();
      },
      toClient: () => undefined,
      now: Date.now,
      clock: () => performance.now(),
      log: () => undefined,
    },
    recover([]),
  );
  manager.rules = SHARING_RULES;
  for (let i = 0; i < WORKERS; i++) {
    const about = {
      instance: `w${i}`,
      token: `t${i}`,
      site: `s${i % 4}`,
      boot: 'b',
      size: { ...cores(1), memoryMb: 1000, diskKb: 1e6 },
    };
    manager.join(manager.collector.make(about, { Requirements: 'true' }, `w${i}`, `w${i}`), []);
  }
  await new Promise((resume) => setImmediate(resume));
  const key = 'a.1.0.1' as const;
  const began = performance.now();
  manager.prepare('c', [
    {
      key,
      owner: 'me',
      ad: { Requirements: 'TARGET.Memory >= 100', RequestCpus: '1' },
      size: { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 },
      prio: 0,
      lease: 2400,
      spec: { executable: { kind: 'there', path: '/bin/true' }, args: [], env: {}, inputs: [], joinStderr: false },
      gang: { count: WORKERS, procs: 1 },
    },
  ]);
  manager.commit([key], () => undefined);
  await all;
  return performance.now() - began;
}

interface Job {
  readonly id: string;
  readonly count: number;
  readonly seconds: number;
}

function mix(seed: number): Job[] {
  let state = seed;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  return Array.from({ length: JOBS }, (_, i) => ({
    id: `j${i}`,
    count: random() < PARALLEL ? 2 + Math.floor(random() * (MACHINES * CORES - 2)) : 1,
    seconds: 30 + Math.floor(random() * 600),
  }));
}

/**
 * The share of all cores in use until the last job starts. `fill`: with backfill, and serial jobs
 * in what is left; otherwise strictly in order.
 */
function utilisation(jobs: readonly Job[], fill: boolean): number {
  const running: { machine: number; ends: number }[] = [];
  let waiting = [...jobs];
  let now = 0;
  let used = 0;
  const machine = (i: number): Machine => {
    const busy = running
      .filter((one) => one.machine === i)
      .map(({ ends }, n) => ({ id: `${i}.${n}`, size: cores(1), ends: ends - now, loses: undefined }));
    const free = busy.reduce((left, { size }) => minus(left, size), cores(CORES));
    const timeToLive = Number.POSITIVE_INFINITY;
    return { id: String(i), site: 's', group: undefined, all: cores(CORES), free, timeToLive, busy };
  };
  const machines = (): Machine[] => Array.from({ length: MACHINES }, (_, i) => machine(i));
  const start = (job: Job, on: readonly number[]): void => {
    for (const machine of on) running.push({ machine, ends: now + job.seconds });
    waiting = waiting.filter(({ id }) => id !== job.id);
  };
  while (waiting.length > 0) {
    const wish = ({ id, count, seconds }: Job): Wish => ({
      id,
      owner: 'me',
      parts: [{ count, size: cores(1), suits: () => true }],
      seconds,
      oneGroup: false,
    });
    const offered = fill ? waiting.filter(({ count }) => count > 1) : waiting.slice(0, 1);
    const { starts, holds } = plan(offered.map(wish), machines());
    for (const { id, seats } of starts) {
      const job = waiting.find((one) => one.id === id);
      if (job)
        start(
          job,
          seats.map(({ machine }) => Number(machine)),
        );
    }
    if (!fill && starts.length > 0) continue;
    const seen = machines();
    // Where a job does not fit, one that takes longer does not either.
    let tooLong = Number.POSITIVE_INFINITY;
    for (const job of fill ? waiting.filter(({ count }) => count === 1) : []) {
      if (job.seconds >= tooLong) continue;
      const room = seen.findIndex((one) => spare(one, holds, job.seconds).cpus >= 1);
      if (room < 0) tooLong = job.seconds;
      else {
        start(job, [room]);
        seen[room] = machine(room);
      }
    }
    if (waiting.length === 0) break;
    const next = Math.min(...running.map(({ ends }) => ends));
    used += running.length * (next - now);
    now = next;
    for (let i = running.length - 1; i >= 0; i--) if ((running[i]?.ends ?? 0) <= now) running.splice(i, 1);
  }
  return used / (now * MACHINES * CORES);
}

export async function main(): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < 20; i++) times.push(await grant());
  times.sort((a, b) => a - b);
  console.log(
    `a grant of ${WORKERS} workers: median ${times[10]?.toFixed(1)} ms, at most ${times.at(-1)?.toFixed(1)} ms`,
  );
  const seeds = [1, 2, 3, 4, 5];
  const mean = (fill: boolean): number =>
    (100 * seeds.reduce((sum, seed) => sum + utilisation(mix(seed), fill), 0)) / seeds.length;
  console.log(
    `utilisation of ${MACHINES * CORES} cores: ${mean(true).toFixed(1)} % with backfill and serial jobs, ${mean(false).toFixed(1)} % in plain FIFO`,
  );
}
