import { describe, expect, it } from 'vitest';
import { CentralManager } from '../../src/pool/central-manager/central-manager.ts';
import type { CentralManagerPorts } from '../../src/pool/central-manager/central-manager-ports.ts';
import { slotAds } from '../../src/pool/central-manager/slot-ads.ts';
import type { FromCentralManager } from '../../src/pool/wire/wire.ts';
import type { Report } from '../../src/site/contract.ts';
import { steadyClock } from '../../src/util/steady-clock.ts';
import { JUST_TRUE } from './just-true.ts';

const SIZE = { cpus: 1, memoryMb: 1000, diskKb: 1000, gpus: 0 };
const KEY = 'a.1.0.1';
const LEASE = 600;

/** A central manager with a job at a disconnected worker, and both of its clocks. */
async function away() {
  const clocks = { wall: 1.7e12, own: 5000 };
  let last: Report | undefined;
  const told: FromCentralManager[] = [];
  const ports: CentralManagerPorts = {
    journal: { add: () => undefined, whenSaved: (call) => call() },
    toWorker: (_, message) => told.push(message),
    toClient: (_, report) => {
      last = report;
    },
    now: () => clocks.wall,
    clock: () => clocks.own,
    log: () => undefined,
  };
  const centralManager = new CentralManager(ports, { attempts: new Map(), grants: new Map(), userPriorities: [] });
  const about = { instance: 'w', token: 't', site: 's', boot: 'b', size: SIZE };
  const ad = { Requirements: 'true', TimeToLive: '7200' };
  const worker = centralManager.collector.make(about, ad, 'w', 'w');
  centralManager.join(worker, []);
  centralManager.prepare('c', [
    { key: KEY, owner: 'o', ad: { Requirements: 'true' }, size: SIZE, prio: 0, lease: LEASE, spec: JUST_TRUE },
  ]);
  centralManager.commit([KEY], () => undefined);
  await settled();
  centralManager.hear('w', { t: 'started', key: KEY, at: 1.7e9 }, Buffer.alloc(0));
  await settled();
  centralManager.leave('w');
  const tick = async () => {
    centralManager.tick();
    await settled();
    return last?.is;
  };
  return { clocks, tick, centralManager, worker, told };
}

const settled = () => new Promise((resume) => setImmediate(() => setImmediate(resume)));

describe("a clock that is set while a job's worker is away", () => {
  it.each([86_400_000, -86_400_000])('by %i ms ends no lease, and keeps none', async (jump) => {
    const { clocks, tick } = await away();
    expect(await tick()).toBe('running');
    clocks.wall += jump;
    clocks.own += LEASE * 1000;
    expect(await tick()).toBe('running');
    clocks.own += 61_000;
    expect(await tick()).toBe('ended');
  });

  it('does not bring back what ended with its lease: a worker that still runs it has to forget it', async () => {
    const { clocks, tick, centralManager, worker, told } = await away();
    const held = [{ key: KEY, is: 'running', startedAt: 1.7e9 }] as const;
    clocks.own += LEASE * 1000 + 59_000;
    await tick();
    centralManager.join(worker, held);
    await settled();
    expect(told).not.toContainEqual({ t: 'forget', keys: [KEY] });
    centralManager.leave('w');
    clocks.own += LEASE * 1000 + 61_000;
    expect(await tick()).toBe('ended');
    centralManager.join(worker, held);
    await settled();
    expect(told).toContainEqual({ t: 'forget', keys: [KEY] });
    expect(await tick()).toBe('ended');
  });

  it('takes no results from a worker that starts again and has not seen yet what its predecessor saw end', async () => {
    const { tick, centralManager, worker, told } = await away();
    const held = [{ key: KEY, is: 'running', startedAt: 1.7e9 }] as const;
    centralManager.join(worker, held);
    centralManager.hear('w', { t: 'ended', key: KEY, ending: { how: { kind: 'exited', code: 0 } } }, Buffer.alloc(0));
    await settled();
    centralManager.leave('w');
    centralManager.join(worker, held);
    expect(await tick()).toBe('ended');
    expect(told).not.toContainEqual({ t: 'forget', keys: [KEY] });
  });

  it('changes nothing of how long a machine is there, and what people see of it goes by their clock', async () => {
    const { clocks, centralManager, worker } = await away();
    clocks.wall += 3_600_000;
    clocks.own += 1000;
    expect(centralManager.collector.timeOf(worker).timeToLive).toBe(7199);
    expect(Number(slotAds(centralManager)[0]?.['EnteredCurrentState'])).toBe(1.7e9);
  });

  it('changes nothing of how long a worker that refused a job is left alone with it, each time longer', async () => {
    const { clocks, centralManager, worker } = await away();
    const { collector } = centralManager;
    const waits = [];
    for (let turn = 0; turn < 6; turn++) {
      collector.refuse(worker, 'kind');
      clocks.wall += 86_400_000;
      const begun = clocks.own;
      while (collector.refuses(worker, 'kind')) clocks.own += 1000;
      waits.push((clocks.own - begun) / 1000);
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 80]);
  });

  it('is not seen by a clock that goes by what has passed', () => {
    const real = Date.now;
    const clock = steadyClock();
    const before = clock();
    try {
      Date.now = () => real() + 86_400_000;
      expect(clock() - before).toBeLessThan(60);
      Date.now = () => real() - 86_400_000;
      expect(clock()).toBeGreaterThanOrEqual(before);
    } finally {
      Date.now = real;
    }
    expect(Math.abs(before - real() / 1000)).toBeLessThan(60);
  });
});
