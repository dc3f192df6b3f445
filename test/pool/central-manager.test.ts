import { StagingLinks } from '../../src/pool/central-manager/staging-links.ts';
import { NO_SHELLS } from './no-shells.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { AttemptRequest } from '../../src/pool/wire/client-wire.ts';
import { reportOf } from '../../src/pool/central-manager/attempts.ts';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import {
  compacted,
  type CentralManagerEntry,
  recover,
} from '../../src/pool/central-manager/central-manager-journal.ts';
import { CentralManagerWorkers } from '../../src/pool/central-manager/worker-connections.ts';
import { Fetching } from '../../src/pool/central-manager/fetching.ts';
import { ownersOf } from '../../src/pool/central-manager/owners.ts';
import { whyWaits } from '../../src/pool/central-manager/why.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { FromCentralManager, FromWorker, HeldAttempt } from '../../src/pool/wire/wire.ts';
import type { Report } from '../../src/site/contract.ts';
import { JUST_TRUE } from './just-true.ts';

const SIZE = { cpus: 2, memoryMb: 1000, diskKb: 1e6, gpus: 0 };
const AD = { Requirements: 'START && TARGET.RequestCpus <= MY.Cpus', START: 'true', Rank: '0' };

function request(i: number): AttemptRequest {
  return {
    key: `a.1.${i}.1`,
    owner: 'me',
    ad: { Requirements: 'true', Rank: '0', RequestCpus: '1', Owner: '"me"' },
    size: { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 },
    prio: 0,
    lease: 2400,
    spec: JUST_TRUE,
  };
}

function task(i: number): AttemptRequest {
  return { ...request(i), spec: { base: 'b', args: [String(i)] } };
}

/** A worker that keeps its promises on a disk that survives it; every start is counted. */
class SimulatedWorker {
  readonly name: string;
  readonly disk = new Map<AttemptKey, HeldAttempt>();
  /** The request of each start; in memory, like what waits behind others. */
  readonly claims = new Map<AttemptKey, string>();
  waiting: Start[] = [];
  connected = false;

  constructor(name: string) {
    this.name = name;
  }

  /** Claims under which something runs. */
  get claimed(): number {
    return new Set([...this.disk.values()].flatMap(({ key, is }) => (is === 'running' ? this.claims.get(key) : [])))
      .size;
  }

  isBusy(claim: string): boolean {
    return [...this.disk.values()].some(({ key, is }) => is === 'running' && this.claims.get(key) === claim);
  }
}

type Start = Extract<FromCentralManager, { t: 'start' }>;

/** A central manager with its journal, and the wires in between: messages on a wire are lost when either end dies. */
class World {
  readonly workers = ['w0', 'w1'].map((name) => new SimulatedWorker(name));
  readonly starts = new Map<AttemptKey, number>();
  readonly results = new Map<AttemptKey, number>();
  /** Attempts that its client was told run, and those of them that it was told wait after that. */
  readonly running = new Set<AttemptKey>();
  readonly takenBack = new Set<AttemptKey>();
  journal: CentralManagerEntry[] = [];
  /** A slow disk keeps what was written only when told to. */
  slow = false;
  /** Duration of a run, in seconds. */
  lasts = 1;
  /** Starts for which a worker had no free slot. */
  refusals = 0;
  #saved = 0;
  #unsaved: (() => void)[] = [];
  toWorker: [string, FromCentralManager][] = [];
  toCentralManager: [string, FromWorker][] = [];
  centralManager = this.open();

  open(): CentralManager {
    return new CentralManager(
      {
        journal: {
          add: (entry) => void this.journal.push(entry),
          whenSaved: (call) => {
            this.#unsaved.push(call);
            if (!this.slow) this.save();
          },
        },
        toWorker: (name, message) => {
          if (this.workers.find((worker) => worker.name === name)?.connected) this.toWorker.push([name, message]);
        },
        toClient: (_client, report) => this.#hear(report),
        now: () => 1000,
        clock: () => 1000,
        log: () => undefined,
      },
      recover(this.journal),
    );
  }

  #hear({ key, is }: Report): void {
    if (is === 'ended') this.results.set(key, (this.results.get(key) ?? 0) + 1);
    if (is === 'running') this.running.add(key);
    if (is === 'queued' && this.running.has(key)) this.takenBack.add(key);
  }

  /** What was written so far is on disk. */
  save(): void {
    this.#saved = this.journal.length;
    for (const call of this.#unsaved.splice(0)) call();
  }

  /** The central manager is killed, and another reads its journal; every connection is cut. */
  killCentralManager(): void {
    this.toWorker = [];
    this.toCentralManager = [];
    for (const worker of this.workers) worker.connected = false;
    if (!this.slow) this.#saved = this.journal.length;
    this.#unsaved = [];
    this.journal = [...compacted(recover(this.journal.slice(0, this.#saved)))];
    this.#saved = this.journal.length;
    this.centralManager = this.open();
    // Its client asks for everything when it connects again.
    for (const attempt of this.centralManager.attempts()) this.#hear(reportOf(attempt));
  }

  cut(worker: SimulatedWorker): void {
    if (!worker.connected) return;
    worker.connected = false;
    this.toWorker = this.toWorker.filter(([name]) => name !== worker.name);
    this.toCentralManager = this.toCentralManager.filter(([name]) => name !== worker.name);
    this.centralManager.leave(worker.name);
  }

  join(worker: SimulatedWorker): void {
    if (worker.connected) return;
    worker.connected = true;
    worker.waiting = [];
    const { name } = worker;
    const about = { instance: name, token: 't', site: 's', boot: 'b', size: SIZE };
    this.centralManager.join(this.centralManager.collector.make(about, AD, name, name), [...worker.disk.values()]);
  }

  /** The oldest message on a wire arrives. */
  deliver(): boolean {
    const down = this.toWorker.shift();
    const worker = this.workers.find(({ name }) => name === down?.[0]);
    if (down && worker?.connected) this.hear(worker, down[1]);
    const up = this.toCentralManager.shift();
    if (up) this.centralManager.hear(up[0], up[1], Buffer.alloc(0));
    return down !== undefined || up !== undefined;
  }

  hear(worker: SimulatedWorker, message: FromCentralManager): void {
    if (message.t === 'forget') for (const key of message.keys) worker.disk.delete(key);
    if (message.t !== 'start' || worker.disk.has(message.key)) return;
    if (worker.isBusy(message.claim)) worker.waiting.push(message);
    else if (worker.claimed >= SIZE.cpus) this.refusals += 1;
    else this.run(worker, message);
  }

  run(worker: SimulatedWorker, message: Start): void {
    worker.claims.set(message.key, message.claim);
    this.starts.set(message.key, (this.starts.get(message.key) ?? 0) + 1);
    worker.disk.set(message.key, { key: message.key, is: 'running', startedAt: 1 });
    this.toCentralManager.push([worker.name, { t: 'started', key: message.key, at: 1 }]);
  }

  /** The longest-running job at a worker ends. */
  end(worker: SimulatedWorker): void {
    const running = [...worker.disk.values()].find(({ is }) => is === 'running');
    if (!running) return;
    const ending = { how: { kind: 'exited', code: 0 }, startedAt: 1, endedAt: 1 + this.lasts } as const;
    worker.disk.set(running.key, { ...running, is: 'ended', ending });
    if (worker.connected) this.toCentralManager.push([worker.name, { t: 'ended', key: running.key, ending }]);
    const claim = worker.claims.get(running.key);
    const next = worker.waiting.findIndex((start) => start.claim === claim);
    for (const start of next < 0 ? [] : worker.waiting.splice(next, 1)) this.run(worker, start);
  }

  /** The running job takes long: what waits behind it is returned. */
  giveBack(worker: SimulatedWorker): void {
    for (const { key } of worker.waiting.splice(0))
      if (worker.connected)
        this.toCentralManager.push([worker.name, { t: 'gone', key, why: 'behind', message: 'it takes long' }]);
  }
}

const NO_WORKERS = {
  agent: 'a',
  tokens: { find: () => undefined, bind: () => true },
  specOf: () => undefined,
  proxies: { sign: () => '' },
  staging: new StagingLinks(),
  lease: 2400,
  onHome: async () => ({ result: -1 }),
  onChunk: () => undefined,
  onFiles: () => undefined,
  shells: NO_SHELLS,
  log: () => undefined,
};

const turn = () => new Promise<void>((resume) => setImmediate(resume));

const STEPS = [
  'deliver',
  'end0',
  'end1',
  'cut0',
  'cut1',
  'join0',
  'join1',
  'kill-central-manager',
  'turn',
  'slow',
  'save',
] as const;

function actsOn(world: World): Record<(typeof STEPS)[number], () => unknown> {
  const [one, two] = world.workers as [SimulatedWorker, SimulatedWorker];
  return {
    deliver: () => world.deliver(),
    end0: () => world.end(one),
    end1: () => world.end(two),
    cut0: () => world.cut(one),
    cut1: () => world.cut(two),
    join0: () => world.join(one),
    join1: () => world.join(two),
    'kill-central-manager': () => world.killCentralManager(),
    turn,
    slow: () => (world.slow = true),
    save: () => world.save(),
  };
}

describe('the central manager', () => {
  it('has each attempt started once, whichever process dies and whatever is lost on the way', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...STEPS), { maxLength: 80, size: 'max' }), async (steps) => {
        const world = new World();
        const keys = Array.from({ length: 6 }, (_, i) => request(i).key);
        world.centralManager.prepare(
          'me',
          keys.map((_, i) => request(i)),
        );
        world.centralManager.commit(keys, () => undefined);
        await turn();
        const acts = actsOn(world);
        for (const step of steps) {
          acts[step]();
          await turn();
        }
        // In the end everything works again.
        world.slow = false;
        world.save();
        for (let round = 0; round < 40; round++) {
          for (const worker of world.workers) world.join(worker);
          await turn();
          while (world.deliver()) await turn();
          for (const worker of world.workers) world.end(worker);
        }
        expect(Object.fromEntries(world.starts)).toEqual(Object.fromEntries(keys.map((key) => [key, 1])));
        expect([...world.results.keys()].sort()).toEqual([...keys].sort());
        expect([...world.takenBack]).toEqual([]);
        for (const key of keys) expect(world.centralManager.get(key)?.phase).toBe('ended');
        await new Promise<void>((resume) => world.centralManager.forget(keys, resume));
        while (world.deliver()) await turn();
        expect(world.workers.flatMap(({ disk }) => [...disk.keys()])).toEqual([]);
        expect(recover(world.journal).attempts.size).toBe(0);
      }),
      { numRuns: 60 },
    );
  }, 60_000);

  it('has each task of a map started once, though workers have tasks that wait behind others', async () => {
    const steps = [...STEPS, 'back0', 'back1', 'work', 'work', 'work'] as const;
    let most = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...steps), { maxLength: 60, size: 'max' }), async (chosen) => {
        const world = new World();
        world.lasts = 0.01;
        const tasks = Array.from({ length: 300 }, (_, i) => task(i));
        const open = () => tasks.filter(({ key }) => !world.results.has(key));
        const [one, two] = world.workers as [SimulatedWorker, SimulatedWorker];
        const work = async (): Promise<void> => {
          while (world.deliver()) await turn();
          most = Math.max(most, one.waiting.length);
          for (const worker of world.workers) for (let i = 0; i < 4; i++) world.end(worker);
        };
        const acts: Record<(typeof steps)[number], () => unknown> = {
          ...actsOn(world),
          back0: () => world.giveBack(one),
          back1: () => world.giveBack(two),
          work,
          'kill-central-manager': () => {
            world.killCentralManager();
            world.centralManager.offer('map', open());
          },
        };
        world.centralManager.offer('map', tasks);
        for (const step of ['join0', 'turn', 'work', 'work', 'work', 'work', ...chosen] as const) {
          await acts[step]();
          await turn();
        }
        world.slow = false;
        world.save();
        for (let round = 0; open().length > 0 && round < 400; round++) {
          for (const worker of world.workers) world.join(worker);
          await turn();
          await work();
        }
        expect(open()).toEqual([]);
        expect(world.refusals).toBe(0);
        expect(Object.fromEntries(world.starts)).toEqual(Object.fromEntries(tasks.map(({ key }) => [key, 1])));
        const used = [...world.centralManager.collector.all()].map(({ claims, free }) => [claims.size, free]);
        while (world.deliver()) await turn();
        expect(used).toEqual([
          [0, SIZE],
          [0, SIZE],
        ]);
      }),
      { numRuns: 40 },
    );
    expect(most).toBe(8);
  }, 60_000);

  it('says nothing of a grant that came to nothing while it was written down', async () => {
    const world = new World();
    const [one, two] = world.workers as [SimulatedWorker, SimulatedWorker];
    world.centralManager.prepare('me', [request(0)]);
    world.centralManager.commit(['a.1.0.1'], () => undefined);
    await turn();
    world.slow = true;
    world.join(one);
    await turn();
    world.cut(one);
    // It reconnects without the attempt, and must not take it again: another worker has it now.
    world.join(one);
    const worker = world.centralManager.collector.get(one.name);
    if (worker) worker.draining = true;
    world.join(two);
    await turn();
    world.save();
    while (world.deliver()) await turn();
    expect([one, two].map(({ disk }) => disk.size)).toEqual([0, 1]);
  });

  it('asks a worker that comes back for the rest of the streams that are followed', async () => {
    const world = new World();
    const [one, two] = world.workers as [SimulatedWorker, SimulatedWorker];
    const key = 'a.1.0.1';
    const asked = () => world.toWorker.filter(([, { t }]) => t === 'follow').map(([, message]) => message);
    world.centralManager.prepare('me', [request(0)]);
    world.centralManager.commit([key], () => undefined);
    // Nothing runs yet: the worker is asked once it does.
    world.centralManager.follow(key, 0, 7);
    expect(asked()).toEqual([]);
    world.join(one);
    await turn();
    while (world.starts.size === 0) world.deliver();
    await turn();
    expect(asked()).toEqual([{ t: 'follow', key, stdout: 0, stderr: 7 }]);
    expect(world.centralManager.streamed(one.name, key, 'stdout', 100)?.key).toBe(key);
    expect(world.centralManager.streamed(two.name, key, 'stdout', 200)).toBeUndefined();
    world.cut(one);
    world.join(one);
    await turn();
    expect(asked()).toEqual([{ t: 'follow', key, stdout: 100, stderr: 7 }]);
  });

  it.each([
    ['keeps the files of', 'preempted', []],
    ['has deleted', 'node-fail', ['a.1.0.1']],
  ] as const)(
    '%s an attempt that ended as %s when a worker comes back that has not seen it end',
    async (_, cause, gone) => {
      const world = new World();
      const [one] = world.workers as [SimulatedWorker];
      const key = 'a.1.0.1';
      world.centralManager.prepare('me', [request(0)]);
      world.centralManager.commit([key], () => undefined);
      world.join(one);
      await turn();
      while (world.deliver()) await turn();
      if (cause === 'node-fail') world.centralManager.declareDead('t', 'its pilot is over');
      else {
        const ending = { how: { kind: 'by-site', cause, message: 'vacated', by: 'user' } } as const;
        world.centralManager.hear(one.name, { t: 'ended', key, ending }, Buffer.alloc(0));
      }
      expect(world.centralManager.get(key)?.phase).toBe('ended');
      world.cut(one);
      world.join(one);
      await turn();
      const forgotten = world.toWorker.flatMap(([, message]) => (message.t === 'forget' ? message.keys : []));
      expect(forgotten).toEqual(gone);
    },
  );

  it('has run elsewhere what ended and was lost with its worker, also where only the next central manager hears of that', async () => {
    const world = new World();
    const [one, two] = world.workers as [SimulatedWorker, SimulatedWorker];
    const keys = [request(0), request(1)].map(({ key }) => key);
    world.centralManager.prepare('me', [request(0), request(1)]);
    world.centralManager.commit(keys, () => undefined);
    world.join(one);
    await turn();
    while (world.deliver()) await turn();
    world.end(one);
    while (world.deliver()) await turn();
    expect(keys.map((key) => world.centralManager.get(key)?.phase)).toEqual(['ended', 'running']);
    world.killCentralManager();
    world.centralManager.declareDead('t', 'its pilot is over');
    await turn();
    world.killCentralManager();
    const [ended, ran] = keys.map((key) => world.centralManager.get(key));
    expect(ran).toMatchObject({
      phase: 'ended',
      ending: { how: { cause: 'node-fail', message: 'its pilot is over' } },
    });
    expect(ended).toMatchObject({ phase: 'ended', ending: { how: { kind: 'exited' } } });
    const fetching = new Fetching(
      world.centralManager,
      new CentralManagerWorkers({ centralManager: world.centralManager, ...NO_WORKERS }),
    );
    const wanted = { outputs: [], stdout: true, stderr: false, into: mkdtempSync(join(tmpdir(), 'gry-fetch-')) };
    expect(await fetching.fetch({ ...wanted, key: keys[0] as AttemptKey })).toMatchObject({
      ok: true,
      lost: { cause: 'node-fail' },
    });
    world.join(two);
    await turn();
    expect(world.deliver()).toBe(false);
    rmSync(wanted.into, { recursive: true });
  });

  it('does not have a client wait for a worker that is away: the results of others are not behind it', async () => {
    const world = new World();
    const [one] = world.workers as [SimulatedWorker];
    const { key } = request(0);
    world.centralManager.prepare('me', [request(0)]);
    world.centralManager.commit([key], () => undefined);
    world.join(one);
    await turn();
    while (world.deliver()) await turn();
    world.end(one);
    while (world.deliver()) await turn();
    vi.useFakeTimers();
    try {
      const fetching = new Fetching(
        world.centralManager,
        new CentralManagerWorkers({ centralManager: world.centralManager, ...NO_WORKERS }),
      );
      const outcome = fetching.fetch({ key, outputs: [], stdout: true, stderr: false, into: '/nowhere' });
      await vi.advanceTimersByTimeAsync(3_000);
      const said = await Promise.race([outcome, Promise.resolve('nothing yet')]);
      expect(said).toMatchObject({ ok: false, refusal: { kind: 'later' } });
      await vi.advanceTimersByTimeAsync(60_000);
    } finally {
      vi.useRealTimers();
    }
  });

  it('says who uses the pool and who waits, next to be served first', async () => {
    const world = new World();
    const of = (i: number, owner: string): AttemptRequest => ({ ...request(i), owner });
    const all = [of(0, 'ann'), of(1, 'ann'), of(2, 'ann'), of(3, 'ann'), of(4, 'ann'), of(5, 'bob')];
    world.centralManager.prepare('me', all.slice(0, 5));
    world.centralManager.commit(
      all.slice(0, 5).map(({ key }) => key),
      () => undefined,
    );
    for (const worker of world.workers) world.join(worker);
    await turn();
    world.centralManager.prepare('me', all.slice(5));
    world.centralManager.commit(
      all.slice(5).map(({ key }) => key),
      () => undefined,
    );
    await turn();
    expect(ownersOf(world.centralManager)).toMatchObject([
      { owner: 'bob', inUse: 0, waiting: 1, priority: 500 },
      { owner: 'ann', inUse: 4, waiting: 1 },
    ]);
  });

  it('says which clause turned workers away, how many slots are short, and what a worker for the job would be', async () => {
    const world = new World();
    const asks = (i: number, size: object, Requirements: string): AttemptRequest => ({
      ...request(i),
      ad: { ...request(i).ad, Requirements },
      size: { ...request(i).size, ...size },
    });
    const local = 'TARGET.GryphusSite == "local"';
    const wanted = [
      ...[0, 1, 2].map((i) => asks(i, {}, 'TARGET.GryphusSite == "far" && TARGET.Memory >= 100')),
      asks(3, { cpus: 64, memoryMb: 4096 }, 'true'),
      ...[4, 5, 6, 7, 8, 9].map((i) => asks(i, { memoryMb: 50 }, local)),
    ];
    const keys = wanted.map(({ key }) => key);
    world.centralManager.prepare('me', wanted);
    world.centralManager.commit(keys, () => undefined);
    const why = (i: number) => whyWaits(world.centralManager, `a.1.${i}`);
    expect(why(3)).toEqual({ lines: ['The pool has no workers now.'], wants: { cpus: 64, memoryMb: 4096 } });
    for (const worker of world.workers) world.join(worker);
    for (const { name } of world.workers)
      world.centralManager.hear(name, { t: 'ad', ad: { GryphusSite: '"local"' } }, Buffer.alloc(0));
    await turn();
    expect(why(0)).toEqual({
      lines: [
        "2 workers: not accepted by the job's requirements.",
        '0 of 2 workers would run the job.',
        "2 are rejected by the job's Requirements:",
        '  TARGET.GryphusSite == "far"',
        '      rejects 2, 2 of them by this alone',
        '      there is "local" (2): ask for one of these',
        '3 jobs like it are waiting; for them the pool has 0 slots free: 3 slots short.',
      ],
      wants: { cpus: 1, memoryMb: 100 },
    });
    expect(why(3).lines).toContain('No other job like it is waiting; for it the pool has 0 slots free: 1 slot short.');
    const [{ name: ending } = { name: '' }] = world.workers;
    world.centralManager.hear(ending, { t: 'ad', ad: { TimeToLive: '80' } }, Buffer.alloc(0));
    expect(why(9).lines).toEqual([
      '1 worker: only 80 s of its allocation are left.',
      '1 worker: busy with other jobs: the job requests 1 core (0 free).',
      '2 jobs like it are waiting; for them the pool has 0 slots free and 2 that are in use: 2 slots short.',
    ]);
    world.centralManager.hear(ending, { t: 'ad', ad: { TimeToLive: '9000' } }, Buffer.alloc(0));
    expect(why(9)).toEqual({
      lines: [
        '2 workers: busy with other jobs: the job requests 1 core (0 free).',
        '2 jobs like it are waiting; for them the pool has 0 slots free and 4 that are in use: 2 slots short.',
      ],
    });
  });

  it('gives jobs in containers to a worker as soon as that has found that it can run them, and says why not before', async () => {
    const world = new World();
    const [one] = world.workers as [SimulatedWorker];
    const { key, ...others } = request(0);
    const ad = {
      ...others.ad,
      Requirements: 'TARGET.HasContainer && TARGET.HasSIF',
      WantContainer: 'true',
      WantSIF: 'true',
    };
    world.centralManager.prepare('me', [{ key, ...others, ad }]);
    world.centralManager.commit([key], () => undefined);
    world.join(one);
    await turn();
    const finds = async (found: Readonly<Record<string, string>>) => {
      world.centralManager.hear(one.name, { t: 'ad', ad: found }, Buffer.alloc(0));
      await turn();
      return whyWaits(world.centralManager, 'a.1.0').lines;
    };
    expect(whyWaits(world.centralManager, 'a.1.0').lines[0]).toBe('1 worker: no container runtime there.');
    expect((await finds({ ContainerOfflineReason: '"docker: no daemon."' }))[0]).toBe(
      '1 worker: no container runtime there (docker: no daemon).',
    );
    expect((await finds({ HasContainer: 'true' }))[0]).toContain(
      '1 worker: no apptainer there, which .sif images need',
    );
    expect(world.toWorker).toEqual([]);
    expect(await finds({ HasSIF: 'true' })).toEqual([]);
    expect(world.toWorker.map(([, message]) => message.t)).toContain('start');
  });

  it('explains why a job with remote I/O waits: no machine has it, and what it lacks', async () => {
    const world = new World();
    const [one] = world.workers as [SimulatedWorker];
    const { ad, ...others } = request(0);
    const wanted = { ...others, ad: { ...ad, Requirements: 'TARGET.HasRemoteIO' } };
    world.centralManager.prepare('me', [wanted]);
    world.centralManager.commit([wanted.key], () => undefined);
    world.join(one);
    const finds = async (found: Readonly<Record<string, string>>) => {
      world.centralManager.hear(one.name, { t: 'ad', ad: found }, Buffer.alloc(0));
      await turn();
      return whyWaits(world.centralManager, 'a.1.0').lines;
    };
    expect((await finds({}))[0]).toBe('1 worker: no remote I/O there.');
    expect((await finds({ HasRemoteIO: 'false', HasRemoteIOReason: '"the kernel is too old."' }))[0]).toBe(
      '1 worker: no remote I/O there (the kernel is too old).',
    );
    expect(await finds({ HasRemoteIO: 'true' })).toEqual([]);
    expect(world.toWorker.map(([, message]) => message.t)).toContain('start');
  });

  it('withdraws what waits, and does not start it afterwards', async () => {
    const world = new World();
    world.centralManager.prepare('me', [request(0)]);
    world.centralManager.commit(['a.1.0.1'], () => undefined);
    world.centralManager.cancel(['a.1.0.1'], 'remove', 'no');
    world.killCentralManager();
    for (const worker of world.workers) world.join(worker);
    await turn();
    expect(world.deliver()).toBe(false);
    expect(world.centralManager.get('a.1.0.1')?.phase).toBe('withdrawn');
  });
});
