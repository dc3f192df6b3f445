import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import { SiteHealth } from '../../src/gridmanager/health.ts';
import { workLoopsWanted } from '../../src/job/work-loops.ts';
import { backOff, nextPoll, SubmitBudget } from '../../src/gridmanager/pacing.ts';
import { eventOf } from '../../src/gridmanager/report.ts';
import { LIFE, STATES } from '../../src/job/life.ts';

const RETRY = { min: 1000, max: 300_000 };

const away = new GryphusError('site-unreachable', 'no answer');

describe('the pace', () => {
  it('is quick after a change and slows down to the bound', () => {
    const backoff = { pollMinMs: 1000, pollMaxMs: 10_000 };
    let ms = 8000;
    for (let i = 0; i < 5; i++) ms = nextPoll(ms, false, backoff);
    expect(ms).toBe(10_000);
    expect(nextPoll(ms, true, backoff)).toBe(1000);
  });

  it('backs off by doubling, up to five minutes and an eighth', () => {
    expect(backOff(1, 0.5, RETRY)).toBe(1000);
    expect(backOff(3, 0.5, RETRY)).toBe(4000);
    expect(backOff(1000, 1, RETRY)).toBeLessThanOrEqual(337_500);
  });

  it('never allows more submits in a minute than the site does, twice the burst at the most', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.tuple(fc.nat(5000), fc.nat(600))),
        (perMinute, steps) => {
          let now = 0;
          let spent = 0;
          const budget = new SubmitBudget(perMinute, now);
          for (const [ms, want] of steps) {
            now += ms;
            const take = Math.min(want, budget.available(now));
            budget.spend(take);
            spent += take;
            expect(spent).toBeLessThanOrEqual(perMinute + (now / 60_000) * perMinute);
          }
        },
      ),
    );
  });

  it('says how long to wait for the next submit', () => {
    const budget = new SubmitBudget(60, 0);
    budget.spend(60);
    expect(budget.waitMs(0)).toBe(1000);
    expect(budget.waitMs(1000)).toBe(0);
  });
});

describe('a site’s health', () => {
  it('is news once, and leaves a failing site alone for longer each time', () => {
    const health = new SiteHealth(0, () => RETRY);
    expect(health.bad(away, 0, 0.5)).toBe(true);
    expect(health.waitMs(0)).toBe(1000);
    expect(health.bad(away, 1000, 0.5)).toBe(false);
    expect(health.waitMs(1000)).toBe(2000);
    expect(health.good(4000)).toBe(true);
    expect(health.waitMs(4000)).toBe(0);
  });

  it('does not wait for years when the clock was set back', () => {
    const health = new SiteHealth(10 ** 12, () => RETRY);
    health.bad(away, 10 ** 12, 0.5);
    expect(health.waitMs(0)).toBeLessThanOrEqual(337_500);
  });

  it('says when a person is needed', () => {
    const health = new SiteHealth(0, () => RETRY);
    health.bad(new GryphusError('needs-login', 'a code, please'), 0, 0.5);
    expect(health.view.connection).toBe('needs-login');
    health.encourage();
    expect(health.waitMs(0)).toBe(0);
  });
});

describe('work loops and reports', () => {
  it('want a round for every state that has work', () => {
    for (const state of STATES) {
      const workLoops = workLoopsWanted([{ site: 's', state, jobs: 1 }]).get('s');
      expect(workLoops !== undefined, state).toBe(LIFE[state].does !== 'nothing' || state === 'idle');
    }
    expect(workLoopsWanted([{ site: '', state: 'idle', jobs: 3 }]).size).toBe(0);
  });

  it('never take an unclear word or silence for an end', () => {
    for (const state of STATES) {
      expect(eventOf({ key: 'a.1.0.1', is: 'unclear', message: 'SPECIAL_EXIT' }, state)).toBeUndefined();
    }
  });

  it('say nothing twice', () => {
    expect(eventOf({ key: 'a.1.0.1', is: 'queued' }, 'committed')).toBeUndefined();
    expect(eventOf({ key: 'a.1.0.1', is: 'running' }, 'running')).toBeUndefined();
    expect(eventOf({ key: 'a.1.0.1', is: 'running' }, 'unknown')).toBe('started');
  });
});
