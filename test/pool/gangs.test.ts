import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptOfNode, type AttemptKey } from '../../src/job/ids.ts';
import { SHARING_RULES } from '../../src/pool/central-manager/sharing-rules.ts';
import { SLOW } from '../slow.ts';
import { JUST_TRUE } from './just-true.ts';
import { GangPool } from './gang-pool.ts';

const ENDED = { kind: 'exited', code: 0 } as const;

async function pool(cpus: readonly number[], ad?: Readonly<Record<string, string>>): Promise<GangPool> {
  const made = new GangPool(cpus, ad);
  for (const worker of made.workers) made.join(worker);
  await made.settle();
  return made;
}

const nodes = (made: GangPool) =>
  made
    .running()
    .map(({ node = -1 }) => node)
    .sort((a, b) => a - b);
const running = (made: GangPool) =>
  made
    .running()
    .map(({ key }) => key)
    .sort();
const last = (made: GangPool, key: AttemptKey) => made.reports.filter((report) => report.key === key).at(-1);

describe('a parallel job in the pool', () => {
  it('starts on all its nodes at once, and ends with node 0', async () => {
    const made = await pool([2, 2]);
    made.submit('a.1.0.1', 3);
    await made.settle();
    expect(nodes(made)).toEqual([0, 1, 2]);
    expect(last(made, 'a.1.0.1')).toMatchObject({
      is: 'running',
      nodes: [{ number: 0 }, { number: 1 }, { number: 2 }],
    });
    expect(made.journal.filter(({ r }) => r === 'G')).toHaveLength(1);
    const first = made.running().find(({ node }) => node === 0);
    if (first) made.end(first.worker, first.key, { kind: 'exited', code: 7 });
    await made.settle();
    expect(nodes(made)).toEqual([]);
    expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'ended', how: { kind: 'exited', code: 7 } });
    expect(made.centralManager.collector.capacity().freeCpus).toBe(4);
  });

  it('waits for all jobs of its cluster, and numbers their nodes through', async () => {
    const made = await pool([4]);
    made.submit('a.1.0.1', 1, { procs: 2 });
    await made.settle();
    expect(made.running()).toEqual([]);
    made.submit('a.1.1.1', 2, { procs: 2 });
    await made.settle();
    expect(running(made)).toEqual(['a.1.0.1.0', 'a.1.1.1.1', 'a.1.1.1.2']);
    const first = made.running().find(({ node }) => node === 0);
    if (first) made.end(first.worker, first.key, ENDED);
    await made.settle();
    for (const key of ['a.1.0.1', 'a.1.1.1'] as const)
      expect(last(made, key)).toMatchObject({ is: 'ended', how: ENDED });
  });

  it('runs again when a worker dies under it, and nothing of it goes on in the meantime', async () => {
    const made = await pool([1, 1, 1]);
    made.submit('a.1.0.1', 3);
    await made.settle();
    const [, second] = made.workers;
    if (second) made.die(second);
    await made.settle();
    expect(made.running()).toEqual([]);
    expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'ended', how: { kind: 'by-site', cause: 'node-fail' } });
  });

  it('runs again when a node has vanished', async () => {
    const made = await pool([1, 1]);
    made.submit('a.1.0.1', 2);
    await made.settle();
    const second = made.running().find(({ node }) => node === 1);
    if (second) made.end(second.worker, second.key, { kind: 'by-site', cause: 'vanished', message: 'nobody knows' });
    await made.settle();
    expect(made.running()).toEqual([]);
    const lost = { kind: 'by-site', cause: 'node-fail', message: 'node 1: nobody knows' };
    expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'ended', how: lost });
  });

  it('gives its slots back if a node is not ready in time, and tells why it waits', async () => {
    const made = await pool([1, 1]);
    made.submit('a.1.0.1', 2);
    // One step at a time, until both have been told; then one worker falls silent.
    while (!made.workers.every(({ held }) => held.size === 1)) await made.step();
    const [, second] = made.workers;
    if (second) second.connected = false;
    await made.settle();
    made.tick(61);
    await made.settle();
    expect(made.ledger).toEqual([]);
    expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'queued', why: 'node 1 was not ready within 60 s' });
    expect(made.centralManager.collector.capacity().freeCpus).toBe(2);
  });

  it('is withdrawn whole, before and after its start', async () => {
    const made = await pool([2]);
    made.submit('a.1.0.1', 3);
    made.submit('a.2.0.1', 2);
    await made.settle();
    expect(nodes(made)).toEqual([0, 1]);
    made.centralManager.cancel(['a.1.0.1', 'a.2.0.1'], 'remove', 'by the user');
    await made.settle();
    expect(made.running()).toEqual([]);
    expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'lost' });
    expect(last(made, 'a.2.0.1')).toMatchObject({ is: 'ended', how: { cause: 'cancelled' } });
    made.centralManager.forget(['a.1.0.1', 'a.2.0.1'], () => undefined);
    await made.settle();
    expect(made.workers.map(({ held }) => held.size)).toEqual([0]);
  });

  it('ends when one job of its cluster is withdrawn, and the others wait for it', async () => {
    const made = await pool([4]);
    for (const key of ['a.1.0.1', 'a.1.1.1'] as const) made.submit(key, 1, { procs: 2 });
    await made.settle();
    expect(nodes(made)).toEqual([0, 1]);
    made.centralManager.cancel(['a.1.1.1'], 'remove', 'by the user');
    await made.settle();
    expect(made.running()).toEqual([]);
    expect(last(made, 'a.1.1.1')).toMatchObject({ is: 'ended', how: { cause: 'cancelled' } });
    const lost = { cause: 'node-fail', message: 'job 1.1, which ends together with it, was withdrawn' };
    expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'ended', how: lost });
    // The journal tells the same.
    await made.crash();
    expect(made.centralManager.get('a.1.0.1')?.ending?.how).toMatchObject(lost);
    made.centralManager.forget(['a.1.0.1', 'a.1.1.1'], () => undefined);
    made.submit('a.1.0.2', 1, { procs: 2 });
    await made.settle();
    expect(made.running()).toEqual([]);
  });

  it('makes opportunistic jobs go only from machines that name a dedicated scheduler', async () => {
    for (const [ad, run] of [
      [{}, ['a.1.0.1', 'a.2.0.1']],
      [{ DedicatedScheduler: '"DedicatedScheduler@me"' }, ['a.3.0.1.0', 'a.3.0.1.1']],
    ] as const) {
      const made = await pool([2], ad);
      made.submit('a.1.0.1', 0);
      made.submit('a.2.0.1', 0);
      await made.settle();
      made.submit('a.3.0.1', 2);
      await made.settle();
      made.tick(5);
      await made.settle();
      expect(running(made)).toEqual(run);
    }
  });

  it('is served by its submission, or as owners take turns by their priorities', async () => {
    for (const [fifo, first] of [
      [true, 'a.2.0.1'],
      [false, 'a.3.0.1'],
    ] as const) {
      const made = await pool([2]);
      made.centralManager.rules = { ...SHARING_RULES, dedicated: { fifo, keepSeconds: 0 } };
      made.submit('a.1.0.1', 2, {}, { owner: 'ann' });
      await made.settle();
      made.tick(3600);
      for (const [cluster, owner] of ['ann', 'bob', 'ann'].entries()) {
        made.submit(`a.${cluster + 2}.0.1`, 2, {}, { owner });
        made.tick(1);
      }
      await made.settle();
      expect(made.centralManager.gangs.told.get(first.slice(0, 3))).toMatchObject({ is: 'next' });
      for (const { worker, key } of made.running()) made.end(worker, key, ENDED);
      await made.settle();
      expect(running(made)).toEqual([`${first}.0`, `${first}.1`]);
    }
  });

  it('leaves its slots to the next parallel job on machines of a dedicated scheduler, until the time is over', async () => {
    for (const [ad, serial] of [
      [{}, ['a.2.0.1', 'a.3.0.1']],
      [{ DedicatedScheduler: '"DedicatedScheduler@me"' }, []],
    ] as const) {
      const made = await pool([2], ad);
      made.centralManager.rules = { ...SHARING_RULES, dedicated: { fifo: true, keepSeconds: 600 } };
      made.submit('a.1.0.1', 2);
      await made.settle();
      for (const key of ['a.2.0.1', 'a.3.0.1'] as const) made.submit(key, 0);
      for (const { worker, key } of made.running()) made.end(worker, key, ENDED);
      await made.settle();
      expect(running(made)).toEqual(serial);
      if (serial.length > 0) continue;
      expect(made.centralManager.gangs.holds.map((hold) => hold.for)).toEqual(Array(2).fill('the next parallel job'));
      // A smaller parallel job uses one of them, and keeps it again when it has ended.
      made.tick(500);
      made.submit('a.4.0.1', 1);
      await made.settle();
      expect(running(made)).toEqual(['a.4.0.1.0']);
      expect(made.centralManager.gangs.holds).toHaveLength(1);
      for (const { worker, key } of made.running()) made.end(worker, key, ENDED);
      await made.settle();
      made.tick(101);
      await made.settle();
      expect(running(made)).toEqual(['a.2.0.1']);
      made.tick(500);
      await made.settle();
      expect(running(made)).toEqual(['a.2.0.1', 'a.3.0.1']);
      expect(made.centralManager.gangs.hasWork).toBe(false);
    }
  });

  it('remains one of the dedicated scheduler when the central manager has crashed', async () => {
    const made = await pool([2], { DedicatedScheduler: '"DedicatedScheduler@me"' });
    made.submit('a.1.0.1', 2);
    await made.settle();
    await made.crash();
    await made.settle();
    made.submit('a.2.0.1', 2);
    await made.settle();
    made.tick(5);
    await made.settle();
    expect(running(made)).toEqual(['a.1.0.1.0', 'a.1.0.1.1']);
  });

  it('starts when a reservation of somebody else is over, which is then forgotten', async () => {
    const made = await pool([2]);
    const size = { cpus: 1, memoryMb: 0, diskKb: 0, gpus: 0 };
    const from = made.now / 1000;
    made.centralManager.reserve(
      { id: 'r', owner: 'ann', count: 2, size, from, until: from + 100 },
      undefined,
      () => undefined,
    );
    made.submit('a.1.0.1', 2);
    await made.settle();
    expect(made.running()).toEqual([]);
    await made.crash();
    await made.settle();
    expect(made.running()).toEqual([]);
    made.tick(101);
    await made.settle();
    expect(nodes(made)).toEqual([0, 1]);
    expect([...made.centralManager.reservations()]).toEqual([]);
  });

  it('leaves its slots until its turn to those jobs of a kind that end before', async () => {
    const made = await pool([2]);
    const limited = (walltimeSeconds: number) => ({ spec: { ...JUST_TRUE, walltimeSeconds } });
    made.submit('a.1.0.1', 0, {}, limited(100));
    await made.settle();
    made.submit('a.2.0.1', 2);
    await made.settle();
    made.submit('a.3.0.1', 0, {}, limited(500));
    made.submit('a.4.0.1', 0, {}, limited(50));
    await made.settle();
    expect(running(made)).toEqual(['a.1.0.1', 'a.4.0.1']);
  });

  it('does not lose its turn to jobs that come later', async () => {
    const made = await pool([2]);
    made.submit('a.1.0.1', 0);
    await made.settle();
    made.submit('a.2.0.1', 2);
    for (let i = 3; i < 8; i++) made.submit(`a.${i}.0.1`, 0);
    await made.settle();
    made.tick(5);
    await made.settle();
    expect(made.running().map(({ key }) => key)).toEqual(['a.1.0.1']);
    const [first] = made.running();
    if (first) made.end(first.worker, first.key, ENDED);
    await made.settle();
    expect(running(made)).toEqual(['a.2.0.1.0', 'a.2.0.1.1']);
  });
});

describe('a parallel job of which a node is suspended', () => {
  const owner = (made: GangPool, number: number, still: boolean) => {
    const all = [...made.running(), ...made.running('suspended')];
    const one = all.find(({ node }) => node === number);
    if (one) made.still(one.worker, one.key, 'owner', still);
  };
  const user = (made: GangPool, order: 'suspend' | 'resume') =>
    made.centralManager.order(
      [...made.centralManager.attempts()].filter(({ node }) => node).map(({ key }) => key),
      order,
    );

  it('is suspended whole, and goes on whole', async () => {
    const made = await pool([1, 1, 1]);
    made.submit('a.1.0.1', 1, { procs: 2 });
    made.submit('a.1.1.1', 2, { procs: 2 });
    await made.settle();
    owner(made, 1, true);
    await made.settle();
    expect(nodes(made)).toEqual([]);
    for (const key of ['a.1.0.1', 'a.1.1.1'] as const) expect(last(made, key)).toMatchObject({ is: 'suspended' });
    user(made, 'resume');
    await made.settle();
    expect(nodes(made), 'its machine is in use').toEqual([]);
    owner(made, 1, false);
    await made.settle();
    expect(nodes(made)).toEqual([0, 1, 2]);
    for (const key of ['a.1.0.1', 'a.1.1.1'] as const) expect(last(made, key)).toMatchObject({ is: 'running' });
  });

  it(
    'runs if nobody wants a node suspended, and only then, whatever was lost on the way',
    async () => {
      const acts = fc.array(
        fc.record({
          act: fc.constantFrom('step', 'step', 'step', 'crash', 'cut', 'suspend', 'resume', 'owner'),
          which: fc.nat(2),
          still: fc.boolean(),
        }),
        { maxLength: 40 },
      );
      await fc.assert(
        fc.asyncProperty(acts, async (some) => {
          const made = await pool([1, 1, 1]);
          made.submit('a.1.0.1', 3);
          await made.settle();
          const owners = [false, false, false];
          for (const { act, which, still } of some) {
            const worker = made.workers[which];
            if (act === 'step') await made.step();
            else if (act === 'crash') await made.crash();
            else if (act === 'cut' && worker) {
              made.centralManager.leave(worker.name);
              made.join(worker);
            } else if (act === 'owner') {
              owners[which] = still;
              owner(made, which, still);
            } else if (act === 'suspend' || act === 'resume') user(made, act);
          }
          await made.settle();
          const { still } = made.centralManager.get('a.1.0.1') ?? {};
          expect(nodes(made)).toEqual(still || owners.some(Boolean) ? [] : [0, 1, 2]);
          user(made, 'resume');
          await made.settle();
          expect(nodes(made)).toEqual(owners.some(Boolean) ? [] : [0, 1, 2]);
          for (const which of owners.keys()) owner(made, which, false);
          await made.settle();
          expect(nodes(made)).toEqual([0, 1, 2]);
          expect(last(made, 'a.1.0.1')).toMatchObject({ is: 'running' });
        }),
        { numRuns: SLOW ? 1000 : 50 },
      );
    },
    SLOW ? 900_000 : 60_000,
  );
});

describe('whatever crashes', () => {
  type Act = 'step' | 'crash' | 'die' | 'cut' | 'tick' | 'end' | 'end-first';
  const acts = fc.array(
    fc.record({
      act: fc.constantFrom<Act>(
        'step',
        'step',
        'step',
        'step',
        'step',
        'crash',
        'die',
        'cut',
        'tick',
        'end',
        'end-first',
      ),
      which: fc.nat(20),
    }),
    { maxLength: 60 },
  );

  it(
    'no parallel job starts with fewer than all its nodes ready, none twice, and no claim is left',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          acts,
          fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }),
          async (some, counts) => {
            const made = await pool([2, 2, 1]);
            const wanted = new Map<string, number>();
            const all = new Map<string, number>();
            const attempts = new Map<number, number>();
            const submit = (cluster: number, count: number) => {
              const attempt = (attempts.get(cluster) ?? 0) + 1;
              attempts.set(cluster, attempt);
              const key: AttemptKey = `a.${cluster}.0.${attempt}`;
              wanted.set(key, count);
              all.set(key, count);
              made.submit(key, count);
            };
            for (const [i, count] of counts.entries()) submit(i + 1, count);
            await made.settle();
            const check = () => {
              expect(new Set(made.ledger).size, 'each node started once').toBe(made.ledger.length);
              const keys = made.ledger.map((line) => line.split(' ')[0]);
              expect(new Set(keys).size, 'each attempt started once').toBe(keys.length);
              const gone = new Set(made.saved.flatMap((entry) => (entry.r === 'go' ? entry.keys : [])));
              for (const key of keys) expect(gone).toContain(attemptOfNode(key as AttemptKey));
              for (const entry of made.saved)
                if (entry.r === 'G')
                  expect(entry.nodes).toHaveLength(all.get(attemptOfNode(entry.nodes[0]?.key ?? 'x.0.0.0')) ?? 0);
            };
            for (const { act, which } of some) {
              const worker = made.workers[which % made.workers.length];
              const running = made.running();
              const one =
                act === 'end-first'
                  ? running.find(({ node }) => node === 0)
                  : running[which % Math.max(1, running.length)];
              if (act === 'step') await made.step();
              else if (act === 'crash') await made.crash();
              else if (act === 'tick') made.tick(which * 5);
              else if (act === 'die' && worker) made.die(worker);
              else if (act === 'cut' && worker) {
                made.centralManager.leave(worker.name);
                made.join(worker);
              } else if (one) made.end(one.worker, one.key, ENDED);
              check();
            }
            // From here on nothing fails: every job runs to its end, as its GridManager submits what was lost again.
            for (let round = 0; round < 60; round++) {
              made.tick(70);
              await made.settle();
              for (const { worker, key, node } of made.running()) if (node === 0) made.end(worker, key, ENDED);
              await made.settle();
              for (const [key, count] of wanted) {
                const attempt = made.centralManager.get(key as AttemptKey);
                if (attempt && attempt.phase !== 'ended' && attempt.phase !== 'withdrawn') continue;
                const how = attempt?.ending?.how;
                wanted.delete(key);
                made.centralManager.forget([key as AttemptKey], () => undefined);
                if (how?.kind !== 'exited') submit(Number(key.split('.')[1]), count);
              }
              check();
              if (wanted.size === 0) break;
            }
            await made.settle();
            expect([...wanted.keys()]).toEqual([]);
            made.tick(300);
            await made.settle();
            expect(made.running()).toEqual([]);
            expect(made.centralManager.collector.capacity()).toEqual({ cpus: 5, freeCpus: 5 });
            expect(made.workers.map(({ held }) => held.size)).toEqual([0, 0, 0]);
          },
        ),
        { numRuns: SLOW ? 1000 : 40 },
      );
    },
    SLOW ? 900_000 : 60_000,
  );
});
