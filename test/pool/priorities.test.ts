import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ENTRY } from '../../src/pool/central-manager/central-manager-journal.ts';
import { PRIORITY_RULES, Priorities } from '../../src/pool/central-manager/priorities.ts';
import { FARTHEST, nextIndex } from '../../src/pool/central-manager/updown.ts';

const RATES = PRIORITY_RULES.updown;
const UPDOWN = { ...PRIORITY_RULES, priority: 'updown' } as const;

function clocked(userPriorities: ConstructorParameters<typeof Priorities>[1] = []) {
  const clock = { now: 0 };
  const priorities = new Priorities(() => clock.now, userPriorities);
  return { clock, priorities };
}

describe('the Up-Down index', () => {
  const state = fc.record({
    index: fc.double({ min: -FARTHEST, max: FARTHEST, noNaN: true }),
    held: fc.integer({ min: 0, max: 100 }),
    wants: fc.boolean(),
    seconds: fc.integer({ min: 0, max: 1e6 }),
  });

  it('goes up with what is held, down while wanting, back towards 0 otherwise, and stays in bounds', () => {
    fc.assert(
      fc.property(state, ({ index, held, wants, seconds }) => {
        const next = nextIndex(index, { held, wants, weight: 1 }, seconds, RATES);
        expect(Math.abs(next)).toBeLessThanOrEqual(FARTHEST);
        if (held > 1) expect(next).toBeGreaterThanOrEqual(index);
        if (held === 0 && wants) expect(next).toBeLessThanOrEqual(index);
        if (held === 0 && !wants) {
          expect(Math.abs(next)).toBeLessThanOrEqual(Math.abs(index));
          expect(next * index).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  it('does not depend on how often it is computed', () => {
    fc.assert(
      fc.property(state, fc.integer({ min: 1, max: 50 }), ({ index, held, wants, seconds }, steps) => {
        const standing = { held, wants, weight: 1 };
        let each = index;
        for (let i = 0; i < steps; i++) each = nextIndex(each, standing, seconds / steps, RATES);
        expect(each).toBeCloseTo(nextIndex(index, standing, seconds, RATES), 3);
      }),
    );
  });
});

describe('the priorities of owners', () => {
  it('lets nobody take the same cores in turn, in 10,000 random cycles', () => {
    for (const priority of ['usage', 'updown'] as const) {
      const owners = ['a', 'b', 'c', 'd'];
      fc.assert(
        fc.property(
          fc.array(fc.record({ by: fc.nat(3), from: fc.nat(3), cpus: fc.integer({ min: 1, max: 4 }) }), {
            minLength: 100,
            maxLength: 100,
          }),
          fc.array(fc.tuple(fc.nat(30), fc.integer({ min: 10, max: 2000 })), { minLength: 4, maxLength: 4 }),
          (cycles, starts) => {
            const { clock, priorities } = clocked();
            priorities.rules = { ...PRIORITY_RULES, priority };
            for (const [i, [held, seconds]] of starts.entries()) {
              priorities.use(owners[i] as string, held);
              clock.now += seconds;
            }
            priorities.want(new Set(owners));
            // At one moment, whoever was preempted never takes it back.
            const moves = new Set<string>();
            for (const { by, from, cpus } of cycles) {
              const [taker, loser] = [owners[by] as string, owners[from] as string];
              if (priorities.inUse(loser) < cpus || !priorities.outranks(taker, loser, cpus)) continue;
              expect(moves.has(`${loser} ${taker}`)).toBe(false);
              moves.add(`${taker} ${loser}`);
              priorities.use(loser, -cpus);
              priorities.use(taker, cpus);
            }
          },
        ),
        { numRuns: 100 },
      );
    }
  });

  it('permits an owner without a core to take one from who holds two, at once', () => {
    const { clock, priorities } = clocked();
    priorities.rules = UPDOWN;
    priorities.use('heavy', 2);
    clock.now = 2;
    priorities.want(new Set(['heavy', 'light']));
    expect(priorities.outranks('light', 'heavy', 1)).toBe(true);
    expect(priorities.outranks('heavy', 'light', 1)).toBe(false);
    // The one core that is then left to the heavy owner is safe until the indexes differ.
    priorities.use('heavy', -1);
    expect(priorities.outranks('light', 'heavy', 1)).toBe(false);
    clock.now = 1200;
    expect(priorities.outranks('light', 'heavy', 1)).toBe(true);
  });

  it('puts nice owners last, under both rules', () => {
    for (const rules of [PRIORITY_RULES, UPDOWN]) {
      const { clock, priorities } = clocked();
      priorities.rules = rules;
      priorities.use('heavy', 50);
      clock.now = 100_000;
      expect(priorities.order(['nice-user.me', 'heavy'])).toEqual(['heavy', 'nice-user.me']);
      priorities.use('nice-user.me', 1);
      expect(priorities.outranks('heavy', 'nice-user.me', 1)).toBe(true);
      expect(priorities.outranks('new', 'nice-user.me', 1)).toBe(true);
    }
  });

  it('is saved and read back; nothing is counted in between', () => {
    for (const rules of [PRIORITY_RULES, UPDOWN]) {
      const { clock, priorities } = clocked();
      priorities.rules = rules;
      priorities.use('heavy', 10);
      priorities.change({ owner: 'heavy', set: 'factor', value: 3000 });
      clock.now = 3600;
      priorities.want(new Set(['light']));
      clock.now = 7200;
      const next = clocked(priorities.all());
      next.clock.now = 7200;
      const again = new Priorities(() => next.clock.now, priorities.all());
      again.rules = rules;
      for (const owner of ['heavy', 'light']) expect(again.priority(owner)).toBeCloseTo(priorities.priority(owner), 6);
      expect(again.factor('heavy')).toBe(3000);
      expect(again.all()[0]?.usage).toBe(72_000);
      expect(again.inUse('heavy')).toBe(0);
    }
  });

  it('saves only what changes', () => {
    const { clock, priorities } = clocked();
    const saved = () => priorities.changes().map(({ owner }) => owner);
    priorities.use('a', 1);
    priorities.use('b', 1);
    expect(saved()).toEqual(['a', 'b']);
    priorities.use('b', -1);
    clock.now = 60;
    expect([saved(), saved()]).toEqual([['a', 'b'], ['a']]);
    priorities.change({ owner: 'b', set: 'prio', value: 7 });
    expect(saved()).toEqual(['a', 'b']);
  });

  it('is changed by what condor_userprio sets', () => {
    const { clock, priorities } = clocked();
    priorities.use('a', 1);
    clock.now = 100;
    expect(priorities.change({ owner: 'a', set: 'prio', value: 20 })).toBe(true);
    expect(priorities.priority('a')).toBe(20_000);
    priorities.change({ owner: 'b', set: 'prio', value: -5 });
    expect(priorities.priority('b')).toBe(500);
    priorities.change({ owner: 'b', set: 'delete' });
    priorities.change({ owner: 'a', set: 'factor', value: 10 });
    expect(priorities.priority('a')).toBe(200);
    priorities.change({ owner: 'a', set: 'accum', value: 42 });
    expect(priorities.all()[0]).toMatchObject({ usage: 42, begin: 0, inUse: 1 });
    priorities.change({ owner: 'a', set: 'reset' });
    expect(priorities.all()[0]).toMatchObject({ usage: 0, begin: 100, factor: 10 });
    // Of an owner who holds something, what is held is kept.
    priorities.change({ owner: 'a', set: 'delete' });
    expect([priorities.priority('a'), priorities.inUse('a')]).toEqual([500, 1]);
    expect(priorities.change({ owner: 'nobody', set: 'delete' })).toBe(false);
    expect(priorities.change({ owner: 'nobody', set: 'reset' })).toBe(false);
  });

  it('can be read by the next central manager, whatever was set', () => {
    const sets = fc.constantFrom('prio', 'factor', 'accum', 'begin', 'last', 'reset', 'delete');
    const change = fc.record({ set: sets, value: fc.double({ noNaN: true, noDefaultInfinity: true }) });
    fc.assert(
      fc.property(fc.constantFrom('usage', 'updown'), fc.array(change, { maxLength: 5 }), (priority, changes) => {
        const { clock, priorities } = clocked();
        priorities.rules = { ...PRIORITY_RULES, priority };
        priorities.use('a', 1);
        for (const one of changes) {
          clock.now += 1;
          priorities.change({ owner: 'a', ...one });
        }
        const entry = { r: 'o', userPriorities: priorities.all() };
        expect(ENTRY.safeParse(JSON.parse(JSON.stringify(entry))).error).toBeUndefined();
      }),
    );
  });
});
