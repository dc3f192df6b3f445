import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localFork } from '../conformance/grounds.ts';
import { freshKey, type Ground, ledgerJob, starts, Watch } from '../conformance/kit.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await localFork({ slots: 2 });
});
afterAll(() => ground.close());

describe('taking back what has not started', () => {
  it('leaves what runs alone, withdraws what waits, and may be repeated', { timeout: 60_000 }, async () => {
    const site = await ground.open();
    const watch = new Watch(site);
    const [first, second, waits, prepared, unknown] = [freshKey(), freshKey(), freshKey(), freshKey(), freshKey()];
    const go = `${ground.scratch}/go`;
    const slow = `while [ ! -e '${go}' ]; do sleep 0.1; done`;
    await site.prepare([first, second, waits, prepared].map((key) => ledgerJob(ground, key, slow)));
    await site.commit([first, second]);
    for (const key of [first, second]) await watch.until(key, (r) => r.is === 'running', ground.patience);
    await site.commit([waits]);
    const all = [first, second, waits, prepared, unknown];
    for (let turn = 0; turn < 2; turn++) {
      const outcomes = await site.cancel(all, { onlyIfNotStarted: true });
      expect(all.map((key) => outcomes.get(key)?.ok)).toEqual([false, false, true, true, true]);
      expect(outcomes.get(first)).toMatchObject({ refusal: { kind: 'never', code: 'already-started' } });
    }
    expect(await site.capacity?.()).toEqual({ cpus: 2, freeCpus: 0 });
    writeFileSync(go, '');
    for (const key of [first, second]) {
      const end = await watch.until(key, (r) => r.is === 'ended', ground.patience);
      expect(end).toMatchObject({ how: { kind: 'exited', code: 0 } });
    }
    expect(all.map((key) => starts(ground, key))).toEqual([1, 1, 0, 0, 0]);
    await site.forget([first, second]);
    expect((await site.audit()).records).toEqual([]);
  });

  it('and the start itself: one of the two wins, never both, never neither', { timeout: 120_000 }, async () => {
    const site = await ground.open();
    const watch = new Watch(site);
    const keys = Array.from({ length: 40 }, () => freshKey());
    await site.prepare(keys.map((key) => ledgerJob(ground, key, 'sleep 0.02')));
    await site.commit(keys);
    const withdrawn = new Set<string>();
    // In small batches, from the end of the queue, while the workers take jobs from its front.
    for (let at = keys.length; at > 0; at -= 4) {
      const bite = keys.slice(Math.max(0, at - 4), at);
      const outcomes = await site.cancel(bite, { onlyIfNotStarted: true });
      for (const key of bite) if (outcomes.get(key)?.ok) withdrawn.add(key);
    }
    for (const key of keys) {
      if (!withdrawn.has(key)) await watch.until(key, (r) => r.is === 'ended', ground.patience);
    }
    expect(keys.map((key) => starts(ground, key))).toEqual(keys.map((key) => (withdrawn.has(key) ? 0 : 1)));
    expect(withdrawn.size).toBeGreaterThan(0);
    await site.forget(keys.filter((key) => !withdrawn.has(key)));
    expect((await site.audit()).records).toEqual([]);
  });
});
