import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isEnd, LIFE, type LifeEvent, next, type State, STATES } from '../../src/job/life.ts';

const arrows = STATES.flatMap((from) =>
  (Object.entries(LIFE[from].on) as [LifeEvent, State][]).map(([event, to]) => ({ from, event, to })),
);
const events = [...new Set(arrows.map((a) => a.event))];

function reachable(from: State): Set<State> {
  const seen = new Set<State>([from]);
  for (const state of seen) for (const to of Object.values(LIFE[state].on)) seen.add(to);
  return seen;
}

/** Every walk from `idle` over events in any order, including repeated and late ones. */
const walk = fc.array(fc.constantFrom(...events), { maxLength: 60 }).map((tried) => {
  const states: { state: State; by: LifeEvent | undefined }[] = [{ state: 'idle', by: undefined }];
  for (const event of tried) {
    const to = next(states.at(-1)?.state ?? 'idle', event);
    if (to) states.push({ state: to, by: event });
  }
  return states;
});

describe('the life of a job', () => {
  it('reaches every state from idle', () => {
    expect([...reachable('idle')].sort()).toEqual([...STATES].sort());
  });

  it.each(STATES)('has an end from %s', (state) => {
    expect([...reachable(state)].some(isEnd)).toBe(true);
  });

  it('can be removed from every state that has not ended or is not ending', () => {
    const ending: State[] = ['completing', 'removing', 'completed', 'removed'];
    for (const state of STATES) if (!ending.includes(state)) expect(next(state, 'remove'), state).toBeDefined();
  });

  it('leaves only states that do nothing without the site', () => {
    for (const state of STATES) if (isEnd(state)) expect(LIFE[state].does).toBe('nothing');
  });

  it('never watches what was not committed, and commits nothing that was not taken', () => {
    fc.assert(
      fc.property(walk, (steps) => {
        let taken = false;
        let committed = false;
        let before: State | undefined;
        for (const { state, by } of steps) {
          if (by === 'take') [taken, committed] = [true, false];
          // A candidate is granted while it waits: it was prepared and committed as a candidate. An adopted attempt
          // was, in an earlier life.
          if (by === 'granted' || by === 'adopted') taken = committed = true;
          // After a withdrawal it may have been committed with an answer that was lost: the site itself reports that it
          // runs.
          if (before === 'withdrawing' && by === 'started') taken = committed = true;
          before = state;
          if (by === 'committed') {
            expect(taken).toBe(true);
            committed = true;
          }
          if (LIFE[state].does === 'watch') expect(committed).toBe(true);
        }
      }),
    );
  });

  it('completes only what was fetched', () => {
    fc.assert(
      fc.property(walk, (steps) => {
        let home = false;
        for (const { state, by } of steps) {
          if (by === 'take' || by === 'granted' || by === 'adopted') home = false;
          if (by === 'fetched') home = true;
          if (state === 'completed') expect(home).toBe(true);
        }
      }),
    );
  });

  it('keeps the results at the site until they are home, unless the user removes the job', () => {
    const from = arrows.filter((a) => a.from === 'finished' && LIFE[a.to].does === 'forget');
    expect(from.map((a) => a.event)).toEqual(['lost']);
    expect(arrows.filter((a) => a.from === 'finished' && LIFE[a.to].does === 'cancel').map((a) => a.event)).toEqual([
      'remove',
    ]);
  });

  it('lets the site forget an attempt before another begins', () => {
    for (const { from, to } of arrows) {
      if (to === 'idle') expect(['forget', 'cancel', 'nothing'], from).toContain(LIFE[from].does);
    }
  });
});
