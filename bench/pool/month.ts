/*
 * The month of "Condor, a hunter of idle workstations" (1988), replayed on a simulated clock by the central manager's
 * own code: stations whose owners come and go, a heavy user who always has jobs waiting, and the light users of the
 * paper's Table 1, who submit batches. A job that has to leave continues from its checkpoint.
 */
import type { AttemptKey } from '../../src/job/ids.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import { recover } from '../../src/pool/central-manager/central-manager-journal.ts';
import type { SharingRules } from '../../src/pool/central-manager/sharing-rules.ts';
import type { FromCentralManager } from '../../src/pool/wire/wire.ts';
import { Timeline } from './timeline.ts';
import { JUST_TRUE } from '../../test/pool/just-true.ts';

export interface MonthOptions {
  readonly stations: number;
  readonly days: number;
  /** How owners share; without rules, first come, first served. */
  readonly rules: SharingRules | undefined;
  /** The part of the time that a station's owner is there. */
  readonly busy: number;
  /** Jobs of the heavy user that are always in the queue. */
  readonly queued: number;
  readonly tickSeconds: number;
  /** A number in [0, 1). */
  readonly random: () => number;
}

export interface MonthJob {
  readonly user: string;
  readonly submitted: number;
  /** Hours of service. */
  readonly demand: number;
  waited: number;
  ended: boolean;
}

export interface Month {
  readonly jobs: readonly MonthJob[];
  /** Hours of service that the heavy user got. */
  readonly heavyHours: number;
  readonly preemptions: number;
  readonly ownersCame: number;
  /** Processor seconds of this process, for all the time that was simulated. */
  readonly cpuSeconds: number;
  readonly seconds: number;
}

/** Table 1: jobs in the month, their mean demand in hours, and how many come at once. */
const LIGHT = [
  { user: 'B', jobs: 138, hours: 2.5, batch: 6 },
  { user: 'C', jobs: 39, hours: 2.6, batch: 4 },
  { user: 'D', jobs: 40, hours: 0.7, batch: 4 },
  { user: 'E', jobs: 11, hours: 1.7, batch: 2 },
] as const;
const HEAVY = { user: 'A', hours: 6.2 };
const MONTH_DAYS = 30;
/** Sending a checkpoint away, in seconds (the paper: half a megabyte, 5 s each). */
const VACATE = 3;
/** A visit of a station's owner, in seconds, on average. */
const VISIT = 1800;
const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1e6, gpus: 0 };

interface Run {
  readonly job: MonthJob;
  readonly index: number;
  attempt: number;
  /** Seconds that are left. */
  left: number;
  waitingSince: number;
  startedAt: number | undefined;
  station: string | undefined;
  timer: number;
}

export async function month(options: MonthOptions): Promise<Month> {
  const { stations, days, rules, busy, queued, random } = options;
  const time = new Timeline();
  const runs: Run[] = [];
  const at = new Map<string, Run>();
  const told: [string, FromCentralManager][] = [];
  let preemptions = 0;
  let ownersCame = 0;
  let heavySeconds = 0;
  let heavyNow = 0;
  const centralManager = new CentralManager(
    {
      journal: { add: () => undefined, whenSaved: (call) => call() },
      toWorker: (worker, message) => told.push([worker, message]),
      toClient: () => undefined,
      now: () => time.now * 1000,
      clock: () => time.now * 1000,
      log: () => undefined,
    },
    recover([]),
  );
  if (rules) centralManager.rules = rules;
  const keyOf = ({ index, attempt }: Run): AttemptKey => `a.${index}.0.${attempt}`;

  function enqueue(run: Run): void {
    const owner = rules ? run.job.user : 'everybody';
    const ad = { Requirements: 'true', Rank: '0', Owner: `"${owner}"` };
    const request = { key: keyOf(run), owner, ad, size: SIZE, prio: 0, lease: 2400, spec: JUST_TRUE };
    centralManager.prepare('c', [request]);
    centralManager.commit([request.key], () => undefined);
  }

  function submit(user: string, hours: number): void {
    // A log-normal distribution: its median is 0.6 of its mean, as in figure 2.
    const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const demand = Math.max(0.1, hours * Math.exp(normal - 0.5));
    const job: MonthJob = { user, submitted: time.now, demand, waited: 0, ended: false };
    const run: Run = {
      job,
      index: runs.length,
      attempt: 1,
      left: demand * 3600,
      waitingSince: time.now,
      startedAt: undefined,
      station: undefined,
      timer: 0,
    };
    runs.push(run);
    if (user === HEAVY.user) heavyNow += 1;
    enqueue(run);
  }

  function start(station: string, key: AttemptKey): void {
    const run = runs[Number(key.split('.')[1])];
    if (!run || keyOf(run) !== key) return;
    run.job.waited += time.now - run.waitingSince;
    Object.assign(run, { startedAt: time.now, station });
    at.set(station, run);
    centralManager.hear(station, { t: 'started', key, at: time.now }, Buffer.alloc(0));
    run.timer = time.add(run.left, () => leave(run, true));
  }

  /** The run ends, or its checkpoint is on its way home. */
  function leave(run: Run, done: boolean): void {
    const { station, startedAt } = run;
    if (station === undefined || startedAt === undefined) return;
    time.cancel(run.timer);
    at.delete(station);
    const ran = Math.min(run.left, time.now - startedAt);
    run.left -= ran;
    if (run.job.user === HEAVY.user) heavySeconds += ran;
    Object.assign(run, { station: undefined, startedAt: undefined });
    const over = (): void => {
      const key = keyOf(run);
      const how = done
        ? ({ kind: 'exited', code: 0 } as const)
        : ({ kind: 'by-site', cause: 'preempted', message: '' } as const);
      const ending = { how, startedAt, endedAt: time.now };
      centralManager.hear(station, { t: 'ended', key, ending }, Buffer.alloc(0));
      centralManager.forget([key], () => undefined);
      if (done) {
        run.job.ended = true;
        if (run.job.user === HEAVY.user) heavyNow -= 1;
        return;
      }
      run.attempt += 1;
      run.waitingSince = time.now;
      enqueue(run);
    };
    if (done) over();
    else time.add(VACATE, over);
  }

  function station(i: number): void {
    const name = `s${i}`;
    const about = { instance: name, token: name, site: 's', boot: 'b', size: SIZE };
    const worker = centralManager.collector.make(about, { Requirements: 'START', START: 'true' }, name, name);
    centralManager.join(worker, []);
    const exponential = (mean: number) => -mean * Math.log(1 - random());
    const say = (START: string) => centralManager.hear(name, { t: 'ad', ad: { START } }, Buffer.alloc(0));
    const away = (): void => {
      say('true');
      time.add(exponential((VISIT * (1 - busy)) / busy), there);
    };
    const there = (): void => {
      ownersCame += 1;
      say('false');
      const run = at.get(name);
      if (run) leave(run, false);
      time.add(exponential(VISIT), away);
    };
    if (busy > 0) time.add(exponential((VISIT * (1 - busy)) / busy), there);
  }

  for (let i = 0; i < stations; i++) station(i);
  for (const { user, jobs, hours, batch } of LIGHT) {
    const between = (MONTH_DAYS * 86_400 * batch) / jobs;
    const come = (): void => {
      for (let i = 0; i < batch; i++) submit(user, hours);
      time.add(-between * Math.log(1 - random()), come);
    };
    time.add(between * random(), come);
  }
  const tick = (): void => {
    while (heavyNow < queued) submit(HEAVY.user, HEAVY.hours);
    centralManager.tick();
    time.add(options.tickSeconds, tick);
  };
  tick();
  const cpu = process.cpuUsage();
  const end = days * 86_400;
  while (time.now < end) {
    time.step();
    // The central manager answers, and what it says is done, until it says no more.
    for (let quiet = 0; quiet < 2; ) {
      await new Promise((resume) => setImmediate(resume));
      quiet = told.length === 0 ? quiet + 1 : 0;
      for (const [name, message] of told.splice(0)) {
        if (message.t === 'start') start(name, message.key);
        const run = at.get(name);
        if (message.t !== 'cancel' || !run || keyOf(run) !== message.key) continue;
        preemptions += 1;
        leave(run, false);
      }
    }
  }
  for (const run of runs) {
    if (run.startedAt !== undefined && run.job.user === HEAVY.user) heavySeconds += time.now - run.startedAt;
    if (run.startedAt === undefined && !run.job.ended) run.job.waited += time.now - run.waitingSince;
  }
  const { user, system } = process.cpuUsage(cpu);
  return {
    jobs: runs.map(({ job }) => job),
    heavyHours: heavySeconds / 3600,
    preemptions,
    ownersCame,
    cpuSeconds: (user + system) / 1e6,
    seconds: time.now,
  };
}

/** The wait ratios of the light users' jobs that have ended. */
export function lightWaits({ jobs }: Month): number[] {
  return jobs
    .filter(({ user, ended }) => user !== HEAVY.user && ended)
    .map(({ waited, demand }) => waited / (demand * 3600));
}
