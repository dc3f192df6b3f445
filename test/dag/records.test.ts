import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { forgetOldRecords, JournalPlace } from '../../src/dag/journal-place.ts';
import { loadDag } from '../../src/dag/language/load.ts';
import { Engine } from '../../src/dag/engine/engine.ts';
import { DEFAULT_SETTINGS } from '../../src/dag/language/settings.ts';
import { progressOf } from '../../src/dag/progress.ts';

let stateDir: string;
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'gdag-'));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

const NOW = Date.UTC(2026, 10, 22);

function ended(manager: number, daysAgo: number): JournalPlace {
  const place = new JournalPlace({ stateDir }, manager);
  place.end({ exitCode: 0 });
  const at = (NOW - daysAgo * 86_400_000) / 1000;
  utimesSync(join(stateDir, 'dag', `${manager}.end`), at, at);
  return place;
}

describe('records of ended DAGs', () => {
  it('are the newest ones, up to the given number and age', () => {
    const places = [8, 9, 10, 11].map((manager, i) => ended(manager, [400, 2, 1, 0][i] ?? 0));
    forgetOldRecords({ stateDir }, 4, NOW - 365 * 86_400_000);
    expect(places.map((place) => place.ended()?.exitCode)).toEqual([undefined, 0, 0, 0]);
    forgetOldRecords({ stateDir }, 2, 0);
    expect(places.map((place) => place.ended()?.exitCode)).toEqual([undefined, undefined, 0, 0]);
  });

  it('are all that is deleted', () => {
    const running = new JournalPlace({ stateDir }, 2);
    writeFileSync(running.journal, 'x');
    ended(1, 0);
    forgetOldRecords({ stateDir }, 0, 0);
    expect(readdirSync(join(stateDir, 'dag'))).toEqual(['2.journal']);
    running.abandon();
    expect(readdirSync(join(stateDir, 'dag'))).toEqual([]);
    forgetOldRecords({ stateDir: join(stateDir, 'none') }, 0, 0);
  });

  it('do not grow with the DAG', () => {
    const lines = Array.from(
      { length: 5000 },
      (_, i) => `JOB n${i} s\n${i > 0 ? `PARENT n${i - 1} CHILD n${i}\n` : ''}`,
    );
    const { dag } = loadDag(['x.dag'], { read: () => lines.join(''), absolute: (path) => path });
    const limits = { maxJobs: 0, maxIdle: 0, maxPre: 0, maxPost: 0, maxHold: 0 };
    const engine = new Engine(dag, { settings: DEFAULT_SETTINGS, limits, dagmanId: 1 });
    engine.start(0);
    const { criticalPath } = progressOf(engine.core);
    expect(criticalPath.length).toBe(5000);
    expect(criticalPath.nodes).toHaveLength(100);
  });
});
