import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SITE_CRASH_POINTS } from '../../src/jobmanager/crash-points.ts';
import { some } from '../slow.ts';
import { freshKey, type Ground, ledgerJob, starts, Watch } from './kit.ts';

/**
 * The site's half dies at each of its points (in an ordinary run, at every `every`th); then it continues, and every
 * ledger has one line, or none if nothing was to run.
 */
export function crashTests(ground: () => Ground, every = 1): void {
  describe('its JobManager dies', () => {
    it.each(some(SITE_CRASH_POINTS, every))(
      'at %s',
      async (point) => {
        const at = ground();
        const keys = [freshKey(0), freshKey(1), freshKey(2)];
        const asks = point.startsWith('jm.leave');
        const more = asks ? { leaveWithin: 600 } : {};
        const jobs = keys.map((key) =>
          ledgerJob(at, key, point.startsWith('jm.cancel') ? 'sleep 600' : 'exit 0', more),
        );
        // The JobManager reads the file when it starts.
        const site = await at.open();
        await site.describe();
        await site.close();
        writeFileSync(join(at.root, 'crash-point'), point);
        const other = await at.open({ killAfter: 500 });
        const watch = new Watch(other);
        // The GridManager's behaviour: the same work again after any failure.
        await insist(async () => await other.prepare(jobs));
        await insist(async () => await other.commit(keys));
        if (asks) await insist(async () => (await other.leave?.(keys)) ?? new Map());
        if (point.startsWith('jm.cancel')) {
          await insist(async () => await other.cancel(keys));
          expect(keys.map((key) => starts(at, key)).every((count) => count <= 1)).toBe(true);
        } else {
          for (const [i, key] of keys.entries()) {
            const ended = await watch.ended(key, 60_000, jobs[i]);
            expect(ended.how).toEqual({ kind: 'exited', code: 0 });
          }
          await insist(async () => await other.forget(keys));
          expect(keys.map((key) => starts(at, key))).toEqual([1, 1, 1]);
        }
        expect(hit(at)).toBe(true);
        expect(readdirSync(join(at.root, 'jobs'))).toEqual([]);
        await expect.poll(() => readdirSync(join(at.root, 'trash'))).toEqual([]);
        await other.close();
      },
      120_000,
    );
  });
}

async function insist<T extends ReadonlyMap<unknown, { ok: boolean }>>(work: () => Promise<T>): Promise<void> {
  for (let turn = 1; ; turn++) {
    try {
      const outcomes = await work();
      if ([...outcomes.values()].every((outcome) => outcome.ok)) return;
      if (turn > 20) throw new Error(JSON.stringify([...outcomes]));
    } catch (error) {
      if (turn > 20) throw error;
    }
  }
}

/** The crash point removes its file when it is hit. */
function hit(at: Ground): boolean {
  const file = join(at.root, 'crash-point');
  if (!existsSync(file)) return true;
  rmSync(file);
  return false;
}
