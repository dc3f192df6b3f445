import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { SLOW } from '../slow.ts';
import { PoolsInLine } from './pools-in-line.ts';

const canRun = process.getuid?.() === 0 && spawnSync('which', ['unshare']).status === 0;
if (SLOW && !canRun)
  process.stderr.write('Tests of jobs that are passed on and killed are left out: they need root.\n');

const BORROWER = ['accept', 'commit', 'end', 'forget'] as const;
const LENDER = ['prepare', 'commit', 'end', 'forget'] as const;
const MANAGER = ['prepare', 'commit', 'grant', 'end', 'forget'] as const;
const borrowing: CrashPoint[] = BORROWER.flatMap((step) => [`flock.before-${step}`, `flock.saved-${step}`] as const);
const lending: CrashPoint[] = LENDER.flatMap(
  (step) => [`flock-lender.before-${step}`, `flock-lender.saved-${step}`] as const,
);
const managing: CrashPoint[] = MANAGER.flatMap((step) => [`central-manager.saved-${step}`] as const);
const working: CrashPoint[] = ['worker.saved-record', 'worker.after-start', 'worker.before-end'];

describe.runIf(SLOW && canRun)('a job of the first of three pools that runs in the last', () => {
  let pools: PoolsInLine;
  beforeAll(async () => {
    pools = await new PoolsInLine().open();
    pools.passOn();
    await pools.untilBeyond(2);
  }, 400_000);
  afterAll(() => pools?.end(), 120_000);

  it.each([
    ...borrowing.map((point) => ['a', point] as const),
    ...[...borrowing, ...lending, ...managing].map((point) => ['b', point] as const),
    ...[...lending, ...managing, ...working].map((point) => ['c', point] as const),
  ])(
    'runs once and comes home although a daemon of %s dies at %s',
    async (agent, point) => {
      await pools.untilBeyond(2);
      const before = pools.starts.length;
      pools.crash(agent, point);
      await pools.submit(1, 1);
      await pools.untilEvents('005', 1);
      expect(pools.a.read('out.0')).toBe('input\n');
      // What is forgotten may be forgotten after the job is home.
      if (!point.endsWith('forget')) expect(pools.hasCrashed(agent)).toBe(true);
      const starts = pools.starts.slice(before);
      expect(new Set(starts).size).toBe(starts.length);
    },
    600_000,
  );

  it('runs once and comes home through deaths of every daemon', async () => {
    await pools.untilBeyond(2);
    const before = pools.starts.length;
    const { a, b, c } = pools;
    await pools.submit(16, 4);
    const kills = [
      () => pools.kill(b, 'flock/gateway.pid'),
      () => pools.kill(c, 'flock/gateway.pid'),
      () => pools.kill(b, 'pool/central-manager.pid'),
      () => pools.kill(a, 'flock/gateway.pid'),
      () => pools.kill(c, 'pool/central-manager.pid'),
      () => pools.kill(a, 'pool/central-manager.pid'),
      () => pools.kill(c, 'pool/worker/worker.pid'),
      () => pools.kill(b, 'flock/gateway.pid'),
    ];
    for (let turn = 0; pools.events('005') < 16; turn++) {
      if (turn > 300) throw new Error(`${await a.ok('q', '--nobatch')} ${await a.ok('flock', 'show', 'b')}`);
      if (turn % 2 === 0) kills[turn / 2]?.();
      await new Promise((resume) => setTimeout(resume, 2000));
    }
    const starts = pools.starts.slice(before);
    expect(new Set(starts).size).toBe(starts.length);
    for (let n = 0; n < 16; n++) expect(a.read(`out.${n}`)).toBe('input\n');
  }, 900_000);
});
