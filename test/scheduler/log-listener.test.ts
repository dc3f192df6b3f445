import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Attrs } from '../../src/job/attrs.ts';
import type { EventEntry, JobRecord } from '../../src/queue/api.ts';
import { LogListener } from '../../src/scheduler/log-listener.ts';
import type { LogBatch } from '../../src/scheduler/user-logs/user-logs.ts';

const MANY = 12_345;
const shared = new Attrs({ UserLog: '"/tmp/all.log"' });

/** A queue that has every job, and logs that remember what they accepted. */
class World {
  readonly batches: LogBatch[] = [];
  most = 0;
  failsAfter = Number.POSITIVE_INFINITY;
  accepted: { readonly from: string; readonly last: string } | undefined;

  listener(): LogListener {
    return new LogListener({
      queue: {
        get: async (ids) => {
          this.most = Math.max(this.most, ids.length);
          return ids.map((id): JobRecord => {
            const attrs = new Attrs({}, shared);
            return { id, state: 'idle', manager: '', site: '', attempt: 0, priority: 0, since: 0, attrs };
          });
        },
      },
      logs: {
        accepted: (from) => (this.accepted?.from === from ? this.accepted.last : undefined),
        append: async (batch) => {
          if (this.batches.length >= this.failsAfter) throw new Error('the process died');
          this.batches.push(batch);
          this.accepted = { from: batch.from, last: batch.last };
        },
      },
      host: 'here',
      style: () => [],
    });
  }

  /** The procs whose submit events were written, in order. */
  procs(): number[] {
    const text = this.batches.flatMap(({ texts }) => [...texts.values()]).join('');
    return [...text.matchAll(/^000 \(0*\d+\.0*(\d+)\./gm)].map(([, proc]) => Number(proc));
  }
}

const submitted = (id: string, cluster: number, procs: [number, number][]): EventEntry => ({
  id,
  event: { v: 1, at: 1_790_000_000_000, type: 'submitted', cluster, procs, owner: 'frida' },
});
const all = Array.from({ length: MANY }, (_, proc) => proc);
const heard = [
  submitted('7-0', 1, [[0, 1]]),
  submitted('7-1', 2, [
    [1, 7000],
    [7000, MANY],
  ]),
  submitted('8-0', 3, [[0, 2]]),
];
const expected = [0, ...all.slice(1), 0, 1];

describe('the user logs of a large submit', () => {
  it('are written in parts, so that memory does not grow with the submit', async () => {
    const world = new World();
    await world.listener().hear(heard);
    expect(world.procs()).toEqual(expected);
    expect(world.most).toBeLessThanOrEqual(5000);
    expect(world.batches.every(({ from }) => from === '7-0')).toBe(true);
  });

  it.each([1, 2, 3])('continue after a crash where %i parts had been accepted', async (parts) => {
    const world = new World();
    world.failsAfter = parts;
    await expect(world.listener().hear(heard)).rejects.toThrow('died');
    world.failsAfter = Number.POSITIVE_INFINITY;
    await world.listener().hear(heard);
    expect(world.procs()).toEqual(expected);
  });

  it('are not written twice if a crash came after a bundle, whose last event has the id of the whole', async () => {
    const bundle = (id: string, i: number, size: number) => (i === size - 1 ? id : `${id}.${i}`);
    const ids = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(ids, fc.nat(40), fc.nat(40), async (sizes, first, second) => {
        const events = sizes.flatMap((size, b) =>
          Array.from({ length: size }, (_, i) => submitted(bundle(`${b + 3}-0`, i, size), b + 1, [[i, i + 1]])),
        );
        const world = new World();
        // The next Scheduler hears from the same event on, and perhaps more.
        await world.listener().hear(events.slice(0, 1 + (first % events.length)));
        await world.listener().hear(events.slice(0, 1 + (second % events.length)));
        await world.listener().hear(events);
        expect(world.procs()).toEqual(sizes.flatMap((size) => Array.from({ length: size }, (_, i) => i)));
      }),
    );
  });

  it('are not written twice if the same events come one by one after a failure', async () => {
    const world = new World();
    const listener = world.listener();
    world.failsAfter = 2;
    await expect(listener.hear(heard)).rejects.toThrow('died');
    world.failsAfter = Number.POSITIVE_INFINITY;
    for (const entry of heard) await listener.hear([entry]);
    expect(world.procs()).toEqual(expected);
  });
});
