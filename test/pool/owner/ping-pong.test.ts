import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { ClassAd } from '../../../src/classad/api.ts';
import { POLICIES, POLICY_MACROS } from '../../../src/config/owner-policies.ts';
import { NOTHING, setNow } from '../../../src/pool/owner/machine-attrs.ts';
import { look, MACHINE_LIFE, QUIET, type SlotState } from '../../../src/pool/owner/machine-life.ts';
import { Policy } from '../../../src/pool/owner/policy.ts';
import { adFrom } from '../../../src/pool/wire/ads.ts';
import { seeded } from '../../seeded.ts';
import { SIZE, SPEC, Station } from './model-station.ts';

afterEach(() => vi.useRealTimers());

/** Looks at a machine whose owner and whose other programs come and go. */
const LOOKS = 10_000;
const POLLING = 5;
const HIGH = 0.5;

it.each([
  ['hunter', 60, 30],
  ['desktop', 300, 120],
] as const)(
  'under %s a job is stopped only for a new reason, and goes on only when there is none',
  (name, away, busy) => {
    const random = seeded(1987);
    const policy = new Policy(POLICIES[name]);
    const base = adFrom({ ...POLICY_MACROS, ...POLICIES[name] });
    let state: SlotState = 'busy';
    let [now, entered, started, key] = [1e6, 1e6, 1e6, 0];
    let [others, busySince]: [number, number | undefined] = [0, undefined];
    let moves = 0;
    let reasons = 0;
    for (let n = 0; n < LOOKS; n++) {
      now += POLLING;
      if (random() < 0.02) key = now - random() * POLLING;
      if (random() < 0.02) others = random() < 0.7 ? 0 : random() * 2;
      // Its own job is a load too, while it runs.
      const own = state === 'busy' ? 4 : 0;
      if (others >= HIGH) busySince ??= now;
      else busySince = undefined;
      const [shown, activity] = MACHINE_LIFE[state].shows;
      const my = setNow(new ClassAd().chainTo(base), {
        ...NOTHING,
        now,
        keyboard: now - key,
        load: { total: own + others, own },
        cpuBusyTime: busySince === undefined ? 0 : now - busySince,
        state: shown,
        activity,
        enteredActivity: entered,
      }).set('JobStart', started);
      const still = state === 'suspended' ? now - entered : 0;
      const truths = policy.truths({ my, target: new ClassAd(), now }, false, still);
      for (const to of look(state, { ...QUIET, ...truths })) {
        moves += 1;
        if (to === 'suspended') {
          const typed = now - key < 60;
          const loaded = busySince !== undefined && now - busySince > busy;
          expect(typed || loaded).toBe(true);
          // What stopped it before does not stop it again.
          expect(key > entered || (busySince ?? 0) >= entered).toBe(true);
          reasons += 1;
        }
        if (to === 'busy') expect([now - key >= away, others <= 0.3]).toEqual([true, true]);
        state = to;
        entered = now;
      }
      // It goes on elsewhere, and the next one comes when the owner is away.
      if (state === 'vacating') {
        state = 'busy';
        now = Math.max(now, key) + 1000;
        entered = started = now;
        others = 0;
        busySince = undefined;
      }
    }
    expect(reasons).toBeGreaterThan(50);
    expect(moves).toBeLessThanOrEqual(3 * reasons + 1);
  },
);

it('a clock that is set, forward or back, neither resumes a job nor vacates it early', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const dir = mkdtempSync(join(tmpdir(), 'clock-'));
  let now = 1e6;
  const station = new Station({
    name: 'w',
    dir,
    policy: 'hunter',
    random: () => 1,
    clock: () => now,
    say: () => undefined,
    workOf: () => 1e6,
    dies: 0,
  });
  try {
    station.key = now - 1000;
    const pass = (seconds: number) => {
      for (let n = 0; n < seconds; n++) {
        now += 1;
        station.tick();
        station.look();
      }
    };
    const typing = (seconds: number) => {
      for (let n = 0; n < seconds; n += 10) {
        station.key = now;
        pass(10);
      }
    };
    pass(10);
    station.take({ t: 'start', key: 'a.1.0.1', claim: 'c', kind: 'k', size: SIZE, spec: SPEC, lease: 1e6 });
    const program = station.programs.get('a.1.0.1');
    pass(20);
    expect(program?.still).toBe(false);
    station.key = now;
    pass(10);
    expect(program?.still).toBe(true);
    for (const wall of [Date.now() + 86_400_000, Date.now() - 86_400_000]) {
      vi.setSystemTime(wall);
      typing(100);
      expect([program?.still, program?.asked]).toEqual([true, undefined]);
    }
    typing(110);
    expect(program?.asked).toBeDefined();
  } finally {
    station.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
