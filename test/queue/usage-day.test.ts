import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { reportOf, usageOf } from '../../src/client/usage.ts';
import { Attrs } from '../../src/job/attrs.ts';
import type { HistoryRecord } from '../../src/queue/history-types.ts';
import { oneMorePreemption } from '../../src/job/preemptions.ts';
import { addRow, emptyDay, medianOf, rowOf, type UsageDay, type UsageRow } from '../../src/queue/usage-day.ts';
import { newUsage, UsageFiles } from '../../src/queue/usage-files.ts';
import { lookAtMachines, withMachines } from '../../src/queue/usage-machines.ts';

const DAY = 86_400;
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gusage-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function job(i: number, retired: number, ad: Readonly<Record<string, string>> = {}): HistoryRecord {
  const attrs = new Attrs({
    Owner: '"me"',
    GryphusSite: '"pool"',
    JobUniverse: '5',
    QDate: String(retired - 150),
    CompletionDate: String(retired),
    RemoteWallClockTime: '100.0',
    RequestCpus: '2',
    CumulativeRemoteUserCpu: '90.0',
    CumulativeRemoteSysCpu: '5.0',
    NumJobStarts: '3',
    NumCkpts: '2',
    ...ad,
  });
  return { id: { cluster: i, proc: 0 }, state: 'completed', retired, attrs };
}

/** A history, newest first. */
const historyOf = (jobs: readonly HistoryRecord[]) => ({
  async *read() {
    for (const one of [...jobs].sort((a, b) => b.retired - a.retired)) yield one;
  },
});

describe('what an ended job used', () => {
  it('is in its ad', () => {
    expect(rowOf(job(7, 1000))).toMatchObject({
      owner: 'me',
      site: 'pool',
      batch: '7',
      jobs: 1,
      wall: 100,
      capacity: 200,
      cpu: 95,
      wait: 50,
      ratio: 0.5,
      checkpoints: 2,
      restarts: 2,
      completed: 1,
      preemptions: {},
    });
    const ad = oneMorePreemption({ get: () => '"owner=2 rank=1"' }, 'owner');
    expect(rowOf(job(7, 1000, ad))?.preemptions).toEqual({ owner: 3, rank: 1 });
    expect(rowOf(job(7, 1000, { JobUniverse: '7' }))).toBeUndefined();
    expect(rowOf(job(7, 1000, { GryphusPilot: '"p"' }))).toBeUndefined();
  });

  it('is summed without loss, however many batches there are', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ batch: fc.nat(30), wall: fc.nat(1e6) }), { maxLength: 80 }), (jobs) => {
        const rows: UsageRow[] = [];
        for (const { batch, wall } of jobs) {
          const row = rowOf(job(1, 1e9, { JobBatchName: `"b${batch}"`, RemoteWallClockTime: `${wall}.0` }));
          if (row) addRow(rows, row, 10);
        }
        expect(rows.length).toBeLessThanOrEqual(11);
        const { all } = reportOf([{ ...emptyDay('2026-01-01'), rows }], 'batch');
        expect(all.jobs).toBe(jobs.length);
        expect(all.capacityHours * 1800).toBeCloseTo(
          jobs.reduce((sum, { wall }) => sum + wall, 0),
          3,
        );
      }),
    );
  });

  it('has a median wait ratio within a factor of 1.5', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 50 }), (waits) => {
        const rows: UsageRow[] = [];
        for (const wait of waits) {
          const row = rowOf(job(1, 1e9, { QDate: String(1e9 - 100 - wait) }));
          if (row) addRow(rows, row);
        }
        const exact = ([...waits].sort((a, b) => a - b)[Math.ceil(waits.length / 2) - 1] ?? 0) / 100;
        const median = medianOf(rows[0]?.ratios ?? []) ?? 0;
        expect(Math.abs(Math.log2(median / exact))).toBeLessThan(0.51);
      }),
    );
  });
});

describe("the days' files", () => {
  it('count each job once, whenever they are written, and whatever dies in between', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 4 * DAY }), { maxLength: 40 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 4 * DAY }), fc.nat(3)), { maxLength: 8 }),
        async (times, rounds) => {
          rmSync(join(dir, 'usage'), { recursive: true, force: true });
          const files = new UsageFiles(dir);
          const jobs = times.map((at, i) => job(i, at));
          for (const [until, written] of [...rounds].sort((a, b) => a[0] - b[0])) {
            const past = historyOf(jobs.filter(({ retired }) => retired <= until));
            // It dies after that many files.
            for (const day of (await newUsage(files, past, until)).slice(0, written)) files.write(day);
          }
          const { all } = await usageOf(dir, historyOf(jobs), 'owner', '');
          expect(all.jobs).toBe(jobs.length);
          expect(all.capacityHours).toBeCloseTo((jobs.length * 200) / 3600, 6);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('of 400 days with many batches and machines have less than 50 MB', () => {
    const rows: UsageRow[] = [];
    for (let i = 0; i < 1000; i++) {
      const row = rowOf(
        job(i, 1e9, { JobBatchName: `"a batch with a name ${i}"`, RemoteWallClockTime: `${i}.123456` }),
      );
      if (row) addRow(rows, row);
    }
    const files = new UsageFiles(dir);
    const many = new Map(
      Array.from({ length: 1000 }, (_, i) => [
        `node${i}.some.cluster.example.org (site${i})`,
        { looks: 1440, open: 1234, cores: 1440 * 64, busy: 1234 * 64, suspended: 1234 },
      ]),
    );
    const machines = withMachines({}, many);
    expect(Object.values(machines).reduce((sum, { looks }) => sum + looks, 0)).toBe(1000 * 1440);
    files.write({ ...emptyDay('2026-01-01'), rows, machines, local: { redis: 1.23, scheduler: 4.56 } });
    expect(files.read('2026-01-01').machines).toEqual(machines);
    expect(400 * statSync(join(dir, 'usage/2026-01-01.json')).size).toBeLessThan(50e6);
    for (let i = 0; i < 401; i++) files.write(emptyDay(new Date(i * DAY * 1000).toISOString().slice(0, 10)));
    files.prune();
    expect(files.days()).toHaveLength(400);
  });
});

it('a machine is available while its owner lets it take jobs, and used while they run', () => {
  const slot = (more: Record<string, string>) => ({
    Machine: '"m"',
    GryphusSite: '"local"',
    TotalCpus: '4',
    State: '"Unclaimed"',
    ...more,
  });
  const own = (state: string) => slot({ PartitionableSlot: 'true', Cpus: '1', State: `"${state}"` });
  const part = (state: string, activity: string, cpus: number) =>
    slot({ State: `"${state}"`, Activity: `"${activity}"`, Cpus: String(cpus) });
  const looks = [
    [own('Unclaimed'), part('Claimed', 'Busy', 2), part('Preempting', 'Vacating', 1)],
    [own('Owner'), part('Claimed', 'Suspended', 3)],
    [own('Unclaimed')],
    [own('Unknown'), part('Unknown', 'Idle', 1)],
  ];
  const machines = looks.reduce<UsageDay['machines']>((day, one) => withMachines(day, lookAtMachines(one)), {});
  const [machine, ...others] = reportOf([{ ...emptyDay('2026-01-01'), machines }], 'owner').machines;
  expect(others).toEqual([]);
  expect(machine).toMatchObject({ name: 'm', hours: 3 / 60, coreHours: 12 / 60, availability: 2 / 3 });
  expect([machine?.utilization, machine?.suspended]).toEqual([3 / 12, 3 / 12]);
});

it('leverage is the capacity for each second that our daemons spent', () => {
  const rows = [rowOf(job(1, 1e9)), rowOf(job(2, 1e9, { Owner: '"you"', RemoteWallClockTime: '1000.0' }))];
  const day = { ...emptyDay('2026-01-01'), rows: rows.flatMap((row) => row ?? []), local: { redis: 1, scheduler: 1 } };
  const { all, by, heavy, light } = reportOf([day], 'owner');
  expect(all.leverage).toBeCloseTo(2200 / 2, 6);
  expect(by.map(({ name, leverage }) => [name, leverage])).toEqual([
    ['you', 2000],
    ['me', 200],
  ]);
  expect([heavy.jobs, light.jobs, light.waitRatio?.mean]).toEqual([1, 1, 0.5]);
});
