import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { plan, reservationOf, type Wish } from '../../src/pool/central-manager/gangs/dedicated.ts';
import { type Busy, type Machine, spare } from '../../src/pool/central-manager/gangs/machines.ts';
import { minus, plus } from '../../src/pool/wire/slots.ts';
import type { Size } from '../../src/pool/wire/wire.ts';
import { SLOW } from '../slow.ts';

const cores = (cpus: number): Size => ({ cpus, memoryMb: cpus * 1000, diskKb: cpus * 1000, gpus: 0 });

function machine(id: string, cpus: number, more: Partial<Machine> = {}): Machine {
  const all = cores(cpus);
  const busy = more.busy ?? [];
  const free = busy.reduce((left, { size }) => minus(left, size), all);
  return { id, site: 'here', group: undefined, all, free, timeToLive: Number.POSITIVE_INFINITY, ...more, busy };
}

function busy(cpus: number, ends = Number.POSITIVE_INFINITY, loses?: number): Busy {
  return { id: `b${cpus}-${ends}-${loses}`, size: cores(cpus), ends, loses };
}

function wish(id: string, count: number, more: Partial<Wish> & { readonly cpus?: number } = {}): Wish {
  const { cpus = 1, ...others } = more;
  const part = { count, size: cores(cpus), suits: () => true };
  return { id, owner: 'me', parts: [part], seconds: Number.POSITIVE_INFINITY, oneGroup: false, ...others };
}

const started = (found: ReturnType<typeof plan>): string[] => found.starts.map(({ id }) => id);

describe('the dedicated scheduler', () => {
  it('gives a parallel job all its slots or none', () => {
    const found = plan([wish('a', 3), wish('b', 2)], [machine('m', 2), machine('n', 2)]);
    expect(started(found)).toEqual(['a']);
    expect(found.starts[0]?.seats).toHaveLength(3);
    expect(found.told.get('b')).toMatchObject({ is: 'next', free: 1, wanted: 2 });
  });

  it('passes over what can never be met, and says how much there is', () => {
    const found = plan([wish('a', 40), wish('b', 2)], [machine('m', 12)]);
    expect(started(found)).toEqual(['b']);
    expect(found.told.get('a')).toEqual({ is: 'never', most: 12, wanted: 40 });
    const [part] = wish('a', 10).parts;
    const two = plan([{ ...wish('a', 10), parts: part ? [part, part] : [] }], [machine('m', 12)]);
    expect(two.told.get('a')).toEqual({ is: 'never', most: 12, wanted: 20 });
  });

  it('holds what is free for the first that waits, so that nothing later takes it', () => {
    const found = plan([wish('a', 4), wish('b', 1)], [machine('m', 4, { busy: [busy(2)] })]);
    expect(started(found)).toEqual([]);
    expect(found.holds.map(({ for: whose }) => whose)).toEqual(['a', 'a', 'a', 'a']);
    expect(found.told.get('b')).toEqual({ is: 'behind', free: 0, wanted: 1 });
  });

  it('fills what is held with what has ended by then, and what is not held with anything', () => {
    const machines = [machine('m', 4, { busy: [busy(2, 100)] }), machine('n', 1)];
    const first = wish('a', 2, { cpus: 2 });
    expect(started(plan([first, wish('b', 1, { seconds: 100 })], machines))).toEqual(['b']);
    const long = plan([first, wish('c', 2, { seconds: 101 })], machines);
    expect(started(long)).toEqual([]);
    expect(long.told.get('a')).toMatchObject({ at: 100 });
    const other = plan([first, wish('d', 1, { seconds: 101 })], machines);
    expect(other.starts).toEqual([{ id: 'd', seats: [{ part: 0, machine: 'n' }] }]);
  });

  it('makes opportunistic jobs go, those that lose the least first, and no more than it needs', () => {
    const jobs = [busy(1, Number.POSITIVE_INFINITY, 500), busy(1, Number.POSITIVE_INFINITY, 20), busy(1)];
    const found = plan([wish('a', 2)], [machine('m', 4, { busy: jobs })]);
    expect(found.vacate).toEqual([{ claim: jobs[1]?.id, machine: 'm', for: 'a' }]);
    expect(plan([wish('a', 4)], [machine('m', 4, { busy: [busy(4)] })]).vacate).toEqual([]);
  });

  it('prefers the machines of one site, and takes those of several if no site has enough', () => {
    const machines = [
      machine('a1', 1, { site: 'a' }),
      machine('b1', 1, { site: 'b' }),
      machine('b2', 1, { site: 'b' }),
    ];
    const on = (count: number) => plan([wish('g', count)], machines).starts[0]?.seats.map((seat) => seat.machine);
    expect(on(2)).toEqual(['b1', 'b2']);
    expect(on(3)).toEqual(['a1', 'b1', 'b2']);
  });

  it('keeps a job within one ParallelSchedulingGroup if it asks for that', () => {
    const machines = [machine('x', 1, { group: 'r1' }), machine('y', 1, { group: 'r2' }), machine('z', 1)];
    expect(started(plan([wish('g', 2, { oneGroup: true })], machines))).toEqual([]);
    expect(plan([wish('g', 2, { oneGroup: true })], machines).told.get('g')).toMatchObject({ is: 'never' });
    const rack = [...machines, machine('y2', 1, { group: 'r2' })];
    expect(plan([wish('g', 2, { oneGroup: true })], rack).starts[0]?.seats.map((seat) => seat.machine)).toEqual([
      'y',
      'y2',
    ]);
  });

  it('does not put a job on machines that end too soon', () => {
    const found = plan([wish('g', 2, { seconds: 3600 })], [machine('m', 1), machine('p', 1, { timeToLive: 1800 })]);
    expect(found.told.get('g')).toEqual({ is: 'short', soon: 1, free: 2, wanted: 2 });
    expect(
      started(plan([wish('g', 2, { seconds: 1000 })], [machine('m', 1), machine('p', 1, { timeToLive: 1800 })])),
    ).toEqual(['g']);
  });

  it('lets nothing run into a reservation, and its owner use it while it lasts', () => {
    const part = { count: 2, size: cores(1), suits: () => true };
    const machines = [machine('m', 2)];
    const later = { id: 'r', owner: 'ann', part, from: 600, until: 4200 };
    expect(started(plan([wish('g', 1, { seconds: 600 })], machines, [later]))).toEqual(['g']);
    expect(started(plan([wish('g', 1, { seconds: 601 })], machines, [later]))).toEqual([]);
    const now = { ...later, from: -10 };
    expect(started(plan([wish('g', 1, { seconds: 1 })], machines, [now]))).toEqual([]);
    expect(started(plan([wish('g', 2, { owner: 'ann' })], machines, [now]))).toEqual(['g']);
    expect(reservationOf('ann')).not.toBe(reservationOf('bob'));
  });
});

interface Job {
  readonly id: string;
  readonly at: number;
  readonly count: number;
  readonly cpus: number;
  readonly seconds: number;
  /** A job of the negotiator, which takes what the plan leaves. */
  readonly serial: boolean;
}

/** Runs jobs whose run times are known on machines until all have ended; what becomes of each, and how busy it was. */
function simulate(sizes: readonly number[], jobs: readonly Job[]) {
  const running: { machine: number; job: Job; ends: number; size: Size }[] = [];
  const promised = new Map<string, number>();
  const startedAt = new Map<string, number>();
  const nodes = new Map<string, number>();
  let waiting: Job[] = [];
  let coming = [...jobs].sort((a, b) => a.at - b.at);
  let now = 0;
  const start = (job: Job, index: number, size: Size) => {
    running.push({ machine: index, job, ends: now + job.seconds, size });
    startedAt.set(job.id, now);
    nodes.set(job.id, (nodes.get(job.id) ?? 0) + 1);
  };
  const seen = (): Machine[] =>
    sizes.map((size, index) => {
      const here = running.filter((one) => one.machine === index);
      return machine(String(index), size, {
        busy: here.map((one, i) => ({ id: `${index}.${i}`, size: one.size, ends: one.ends - now, loses: undefined })),
      });
    });
  for (let turn = 0; coming.length + waiting.length + running.length > 0; turn++) {
    if (turn > 500) throw new Error('it never ends');
    waiting.push(...coming.filter(({ at }) => at <= now));
    coming = coming.filter(({ at }) => at > now);
    const gangs = waiting.filter(({ serial }) => !serial);
    const wishes = gangs.map(({ id, count, cpus, seconds }) => wish(id, count, { cpus, seconds }));
    const found = plan(wishes, seen());
    for (const [id, told] of found.told)
      if (told.is === 'next') promised.set(id, Math.min(promised.get(id) ?? Number.POSITIVE_INFINITY, now + told.at));
      else if (told.is === 'never') waiting = waiting.filter((job) => job.id !== id);
    for (const { id, seats } of found.starts) {
      const job = gangs.find((one) => one.id === id);
      if (job) for (const seat of seats) start(job, Number(seat.machine), cores(job.cpus));
    }
    waiting = waiting.filter(({ id }) => !startedAt.has(id));
    for (const job of waiting.filter(({ serial }) => serial)) {
      const room = seen().find((one) => spare(one, found.holds, job.seconds).cpus >= job.cpus);
      if (room) start(job, Number(room.id), cores(job.cpus));
    }
    waiting = waiting.filter(({ id }) => !startedAt.has(id));
    for (const [index, size] of sizes.entries()) {
      const used = running.filter((one) => one.machine === index).reduce((sum, one) => plus(sum, one.size), cores(0));
      expect(used.cpus).toBeLessThanOrEqual(size);
    }
    const next = Math.min(...running.map(({ ends }) => ends), ...coming.map(({ at }) => at));
    if (!Number.isFinite(next)) break;
    now = next;
    for (let i = running.length - 1; i >= 0; i--) if ((running[i]?.ends ?? 0) <= now) running.splice(i, 1);
  }
  return { promised, startedAt, nodes, left: waiting };
}

describe('any run of the dedicated scheduler', () => {
  const jobs = fc.array(
    fc.record({
      at: fc.nat(30),
      count: fc.integer({ min: 1, max: 5 }),
      cpus: fc.integer({ min: 1, max: 2 }),
      seconds: fc.integer({ min: 1, max: 40 }),
      serial: fc.boolean(),
    }),
    { minLength: 2, maxLength: 9 },
  );
  const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });

  it(
    'starts the first that waits when it was promised, whatever fills the gaps, each with all its nodes, and leaves none',
    () => {
      fc.assert(
        fc.property(sizes, jobs, (machines, some) => {
          const all = some.map((one, i): Job => ({ ...one, id: `j${i}`, count: one.serial ? 1 : one.count }));
          const most = Math.max(...machines);
          const { promised, startedAt, nodes, left } = simulate(
            machines,
            all.filter((one) => !one.serial || one.cpus <= most),
          );
          expect(left).toEqual([]);
          for (const [id, at] of promised) expect(startedAt.get(id)).toBeLessThanOrEqual(at);
          for (const job of all) if (startedAt.has(job.id)) expect(nodes.get(job.id)).toBe(job.count);
        }),
        { numRuns: SLOW ? 100_000 : 1000 },
      );
    },
    SLOW ? 900_000 : 60_000,
  );

  it('lets two that would each hold half of the machines run one after the other', () => {
    const two = ['a', 'b'].map((id): Job => ({ id, at: 0, count: 3, cpus: 1, seconds: 10, serial: false }));
    expect([...simulate([2, 2], two).startedAt]).toEqual([
      ['a', 0],
      ['b', 10],
    ]);
  });
});
