import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { adFrom } from '../../src/pool/wire/ads.ts';
import { negotiate, type Offer, type WantedKind } from '../../src/pool/central-manager/negotiator.ts';
import { Priorities } from '../../src/pool/central-manager/priorities.ts';
import type { Size } from '../../src/pool/wire/wire.ts';

const MACHINE = {
  Requirements: 'START && TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory',
  START: 'true',
};

function size(cpus: number, memoryMb = 100): Size {
  return { cpus, memoryMb, diskKb: 0, gpus: 0 };
}

function offer(worker: string, free: Size, more: Record<string, string> = {}, timeToLive = 1e9): Offer<string> {
  const texts = { ...MACHINE, Machine: `"${worker}"`, ...more };
  return { worker, ad: adFrom(texts), free, shape: JSON.stringify(texts), timeToLive, refuses: () => false };
}

function wanted(kind: string, waiting: number, needs: Size, more: Record<string, string> = {}): WantedKind<string> {
  const texts = { RequestCpus: `${needs.cpus}`, RequestMemory: `${needs.memoryMb}`, Requirements: 'true', ...more };
  return {
    kind,
    owner: 'owner',
    ad: adFrom(texts),
    size: needs,
    waiting,
    prio: 0,
    order: 0,
    needs: 90,
  };
}

const run = (jobs: WantedKind<string>[], offers: Offer<string>[], priorities = new Priorities(() => 0)) =>
  negotiate(jobs, offers, { priorities, now: 1000 });

describe('negotiation', () => {
  it('fills machines and never more than that', () => {
    const amounts = fc.record({ cpus: fc.integer({ min: 1, max: 6 }), memory: fc.integer({ min: 1, max: 300 }) });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(amounts, fc.integer({ min: 1, max: 9 })), { maxLength: 6 }),
        fc.array(amounts, { maxLength: 6 }),
        (jobs, machines) => {
          const autoclusters = jobs.map(([a, n], i) => wanted(`k${i}`, n, size(a.cpus, a.memory)));
          const offers = machines.map((a, i) => offer(`w${i}`, size(a.cpus, a.memory)));
          const { grants } = run(autoclusters, offers);
          const left = new Map(offers.map((o) => [o.worker, { ...o.free }]));
          const waiting = new Map(autoclusters.map((k) => [k.kind, k.waiting]));
          for (const { kind, worker } of grants) {
            const there = left.get(worker) as { cpus: number; memoryMb: number };
            const needs = autoclusters.find((k) => k.kind === kind)?.size as Size;
            there.cpus -= needs.cpus;
            there.memoryMb -= needs.memoryMb;
            waiting.set(kind, (waiting.get(kind) ?? 0) - 1);
          }
          for (const there of left.values()) expect(Math.min(there.cpus, there.memoryMb)).toBeGreaterThanOrEqual(0);
          for (const [kind, n] of waiting) {
            expect(n).toBeGreaterThanOrEqual(0);
            const needs = autoclusters.find((k) => k.kind === kind)?.size as Size;
            // Owners that still wait fit nowhere.
            if (n > 0)
              for (const there of left.values())
                expect(there.cpus >= needs.cpus && there.memoryMb >= needs.memoryMb).toBe(false);
          }
        },
      ),
    );
  });

  it('asks both sides, and ranks', () => {
    const offers = [
      offer('old', size(1)),
      offer('new', size(1), { Fast: 'true' }),
      offer('closed', size(1), { START: 'TARGET.Owner == "somebody"' }),
    ];
    const one = (more: Record<string, string>) => run([wanted('k', 1, size(1), more)], offers).grants;
    expect(one({})).toEqual([{ kind: 'k', worker: 'old' }]);
    expect(one({ Rank: 'TARGET.Fast =?= true' })).toEqual([{ kind: 'k', worker: 'new' }]);
    expect(one({ Requirements: 'TARGET.Machine == "closed"' })).toEqual([]);
    expect(one({ Requirements: 'TARGET.Machine == "closed"', Owner: '"somebody"' })).toHaveLength(1);
  });

  it('begins nothing that would not end in time', () => {
    const short = offer('short', size(1), {}, 300);
    expect(run([wanted('k', 1, size(1))], [short]).grants).toHaveLength(1);
    expect(run([{ ...wanted('k', 1, size(1)), needs: 190 }], [short]).grants).toHaveLength(1);
    expect(run([{ ...wanted('k', 1, size(1)), needs: 1090 }], [short]).grants).toEqual([]);
    expect(run([wanted('k', 1, size(1))], [offer('w', size(1), {}, 30)]).grants).toEqual([]);
  });

  it('shares a contended pool by what was used of late', () => {
    let now = 0;
    const priorities = new Priorities(() => now);
    priorities.use('greedy', 3);
    now = 86_400;
    priorities.use('greedy', -3);
    const jobs = [
      { ...wanted('g', 100, size(1)), owner: 'greedy' },
      { ...wanted('m', 100, size(1)), owner: 'modest' },
    ];
    const { grants } = run(jobs, [offer('w', size(40, 1e6))], priorities);
    const of = (kind: string) => grants.filter((grant) => grant.kind === kind).length;
    expect(priorities.priority('greedy')).toBeCloseTo(1750, 5);
    // In inverse proportion to their priorities: 500 and 1750.
    expect(of('m')).toBe(31);
    expect(of('g')).toBe(9);
  });

  it('is quick for many machines of few shapes', () => {
    const offers = Array.from({ length: 10_000 }, (_, i) => ({
      ...offer(`w${i}`, size(8, 1e6), { Site: `"s${i % 10}"` }),
      shape: `s${i % 10}`,
    }));
    const jobs = Array.from({ length: 50 }, (_, i) =>
      wanted(`k${i}`, 400, size(1), { Requirements: `TARGET.Site != "s${i % 10}"` }),
    );
    expect(run(jobs, offers).grants).toHaveLength(20_000);
  });
});
