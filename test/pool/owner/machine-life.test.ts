import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  after,
  CONDITIONS,
  type Facts,
  look,
  MACHINE_LIFE,
  QUIET,
  SLOT_STATES,
  type SlotEvent,
  type SlotState,
} from '../../../src/pool/owner/machine-life.ts';

const EVENTS: readonly SlotEvent[] = ['match', 'claim', 'start', 'end', 'release'];
const RUNS: ReadonlySet<SlotState> = new Set(['busy', 'retiring']);
/** States in which a job has its processes on the machine. */
const HOLDS: ReadonlySet<SlotState> = new Set(['busy', 'suspended', 'retiring', 'vacating', 'killing']);

const facts: fc.Arbitrary<Facts> = fc.record({
  isOwner: fc.boolean(),
  wantSuspend: fc.boolean(),
  suspend: fc.boolean(),
  continue: fc.boolean(),
  preempt: fc.boolean(),
  wantVacate: fc.boolean(),
  kill: fc.boolean(),
  off: fc.constantFrom('now' as const, 'graceful' as const, 'peaceful' as const, undefined),
  mustLeave: fc.boolean(),
  retired: fc.boolean(),
  vacateOver: fc.boolean(),
  empty: fc.boolean(),
});
const step = fc.oneof(facts, fc.constantFrom(...EVENTS));

function neighbours(state: SlotState): SlotState[] {
  return [...MACHINE_LIFE[state].looks.map(([, to]) => to), ...Object.values(MACHINE_LIFE[state].on)];
}

function reachable(from: SlotState): Set<SlotState> {
  const seen = new Set<SlotState>([from]);
  for (const state of seen) for (const to of neighbours(state)) seen.add(to);
  return seen;
}

const last = (state: SlotState, seen: Facts): SlotState => look(state, seen).at(-1) ?? state;

describe('the life of a slot', () => {
  it('reaches every state from the owner', () => {
    expect([...reachable('owner')].sort()).toEqual([...SLOT_STATES].sort());
  });

  it.each(SLOT_STATES)('can be with its owner again from %s', (state) => {
    expect(reachable(state)).toContain('owner');
  });

  it('uses every condition', () => {
    const used = new Set(SLOT_STATES.flatMap((state) => MACHINE_LIFE[state].looks.map(([condition]) => condition)));
    expect([...used].sort()).toEqual(Object.keys(CONDITIONS).sort());
  });

  it('comes to rest at every look, and enters no state twice', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SLOT_STATES), facts, (state, seen) => {
        const passed = look(state, seen);
        expect(new Set([state, ...passed]).size).toBe(passed.length + 1);
      }),
      { numRuns: 5000 },
    );
  });

  it("never lets a job run under the owner's hands", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        let state: SlotState = 'owner';
        for (const one of steps) {
          if (typeof one === 'string') {
            state = after(state, one) ?? state;
            continue;
          }
          const before = state;
          state = last(state, one);
          const back = one.wantSuspend ? one.suspend : one.preempt && one.retired && one.off !== 'peaceful';
          if (back) expect(RUNS.has(state), `${before} → ${state}`).toBe(false);
          if (one.off === 'now' && HOLDS.has(before)) expect(state).toBe('killing');
          if (one.isOwner || one.off) expect(['unclaimed', 'matched', 'claimed']).not.toContain(state);
        }
      }),
      { numRuns: 4000 },
    );
  });

  it('ends a job only when it was told to: a job that is to run or to wait still holds its slot', () => {
    fc.assert(
      fc.property(fc.constantFrom(...HOLDS), facts, (state, seen) => {
        expect(HOLDS.has(last(state, seen))).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  it('starts a job only where the machine is claimed, and offers nothing while its owner has it', () => {
    for (const state of SLOT_STATES) {
      if (after(state, 'start') !== undefined) expect(state).toBe('claimed');
      if (MACHINE_LIFE[state].does === 'refuse') expect(Object.keys(MACHINE_LIFE[state].on)).toEqual([]);
    }
  });

  it('resumes what is suspended only when CONTINUE says so', () => {
    fc.assert(
      fc.property(facts, (seen) => {
        if (look('suspended', seen).some((state) => RUNS.has(state))) expect(seen.continue).toBe(true);
      }),
      { numRuns: 5000 },
    );
  });

  it('passes through a whole afternoon', () => {
    let state: SlotState = 'owner';
    const seen: SlotState[] = [];
    const see = (some: Partial<Facts>): void => {
      state = last(state, { ...QUIET, ...some });
      seen.push(state);
    };
    see({});
    for (const event of ['match', 'claim', 'start'] as const) state = after(state, event) ?? state;
    see({});
    see({ wantSuspend: true, suspend: true, continue: false, isOwner: true });
    see({ wantSuspend: true, continue: false, isOwner: true });
    see({ wantSuspend: true });
    see({ wantSuspend: true, suspend: true, continue: false });
    see({ wantSuspend: true, suspend: true, continue: false, preempt: true });
    see({ wantSuspend: true, suspend: true, preempt: true, vacateOver: true });
    state = after(state, 'end') ?? state;
    see({ isOwner: true });
    see({ off: 'peaceful', empty: false });
    see({ off: 'peaceful' });
    see({});
    expect(seen).toEqual([
      'unclaimed',
      'busy',
      'suspended',
      'suspended',
      'busy',
      'suspended',
      'vacating',
      'killing',
      'owner',
      'draining',
      'drained',
      'unclaimed',
    ]);
  });

  it('promises a job its retirement, and then asks it to leave', () => {
    expect(look('busy', { ...QUIET, preempt: true, retired: false })).toEqual(['retiring']);
    expect(look('busy', { ...QUIET, preempt: true })).toEqual(['retiring', 'vacating']);
    expect(look('busy', { ...QUIET, preempt: true, wantVacate: false })).toEqual(['retiring', 'killing']);
    expect(look('busy', { ...QUIET, mustLeave: true, retired: false })).toEqual(['retiring']);
  });
});
