import { describe, expect, it } from 'vitest';
import { Attrs } from '../../src/job/attrs.ts';
import { formatJobId, type JobId } from '../../src/job/ids.ts';
import type { EventEntry, JobRecord } from '../../src/queue/api.ts';
import { Ended } from '../../src/scheduler/ended.ts';

function ended(from: number, count: number): EventEntry[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `1-${from + i}`,
    event: {
      v: 1,
      at: 0,
      type: 'transition',
      job: `7.${from + i}`,
      event: 'remove',
      from: 'idle',
      to: 'removed',
      attempt: 0,
      set: {},
    },
  }));
}

/** A queue of jobs that have ended. */
function queueOfEnded() {
  const retired: JobId[][] = [];
  const gone = new Set<string>();
  const get = async (ids: readonly JobId[]): Promise<JobRecord[]> =>
    ids
      .filter((id) => !gone.has(formatJobId(id)))
      .map((id) => ({
        id,
        state: 'removed',
        manager: '',
        site: '',
        attempt: 0,
        priority: 0,
        since: 0,
        attrs: new Attrs({}),
      }));
  const retire = async (ids: readonly JobId[]): Promise<number> => {
    retired.push([...ids]);
    for (const id of ids) gone.add(formatJobId(id));
    return ids.length;
  };
  const none = () => {
    throw new Error('not used');
  };
  return { retired, queue: { get, retire, query: none, totals: none } };
}

describe('jobs that have ended', () => {
  it('move into the history at once, or when no event waits, some at a time and in their order', async () => {
    const { retired, queue } = queueOfEnded();
    const moves = new Ended(queue);
    await moves.note(ended(0, 3));
    expect(retired.splice(0).flat()).toHaveLength(3);
    expect(moves.late).toBe(false);
    for (let from = 3; from < 9003; from += 3000) await moves.note(ended(from, 3000), true);
    expect(retired).toEqual([]);
    await moves.note(ended(9003, 1));
    expect(retired.splice(0).flat()).toEqual([{ cluster: 7, proc: 9003 }]);
    const sizes: number[] = [];
    const procs: number[] = [];
    while (moves.late) {
      await moves.catchUp();
      const some = retired.splice(0).flat();
      sizes.push(some.length);
      procs.push(...some.map(({ proc }) => proc));
    }
    expect(sizes).toEqual([3000, 3000, 3000]);
    expect(procs).toEqual(Array.from({ length: 9000 }, (_, i) => i + 3));
  });

  it('are not forgotten if the move fails', async () => {
    const { retired, queue } = queueOfEnded();
    let fails = true;
    const moves = new Ended({
      ...queue,
      retire: async (ids) => {
        if (fails) throw new Error('no space');
        return queue.retire(ids);
      },
    });
    await moves.note(ended(0, 5), true);
    await expect(moves.catchUp()).rejects.toThrow('no space');
    expect(moves.late).toBe(true);
    fails = false;
    await moves.catchUp();
    expect(moves.late).toBe(false);
    expect(retired.flat()).toHaveLength(5);
  });
});
