import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type GangView, MEET_SECONDS, type NodeView, stepOf } from '../../src/pool/central-manager/gangs/gang-life.ts';

const node = (number: number, is: NodeView['is'], more: Partial<NodeView> = {}): NodeView => ({ number, is, ...more });
const gang = (phase: GangView['phase'], nodes: readonly NodeView[], more: Partial<GangView> = {}): GangView => ({
  phase,
  nodes,
  since: 1,
  cancelled: undefined,
  waitsForAll: false,
  ...more,
});
const exited = (code: number) => ({ how: { kind: 'exited', code } as const });

describe('a parallel job', () => {
  it('starts when all its nodes are ready, and not before', () => {
    expect(stepOf(gang('staging', [node(0, 'ready'), node(1, 'coming')]))).toEqual({ do: 'wait' });
    expect(stepOf(gang('staging', [node(0, 'ready'), node(1, 'ready')]))).toEqual({ do: 'go' });
  });

  it('gives everything back if a node cannot start, or is late', () => {
    const lost = node(1, 'over', { why: 'its disk is full' });
    expect(stepOf(gang('staging', [node(0, 'ready'), lost]))).toEqual({
      do: 'release',
      why: 'node 1 cannot start: its disk is full',
    });
    const late = gang('staging', [node(0, 'ready'), node(1, 'coming')], { since: MEET_SECONDS + 1 });
    expect(stepOf(late)).toEqual({ do: 'release', why: 'node 1 was not ready within 60 s' });
  });

  it("ends with node 0, whose exit is its own, and not with another node's", () => {
    expect(stepOf(gang('started', [node(0, 'running'), node(1, 'over', exited(3))]))).toEqual({ do: 'wait' });
    const first = stepOf(gang('started', [node(0, 'over', exited(7)), node(1, 'running')]));
    expect(first).toEqual({ do: 'end', how: { kind: 'exited', code: 7 } });
  });

  it('waits for all nodes if it says so', () => {
    const waitsForAll = { waitsForAll: true };
    expect(stepOf(gang('started', [node(0, 'over', exited(7)), node(1, 'running')], waitsForAll))).toEqual({
      do: 'wait',
    });
    const all = [node(0, 'over', exited(7)), node(1, 'over', exited(5))];
    expect(stepOf(gang('started', all, waitsForAll))).toEqual({ do: 'end', how: { kind: 'exited', code: 7 } });
  });

  it('ends when a node is lost, to run again', () => {
    const how = { kind: 'by-site', cause: 'node-fail', message: 'its worker died' } as const;
    expect(stepOf(gang('started', [node(0, 'running'), node(2, 'over', { how })]))).toEqual({
      do: 'end',
      how: { ...how, message: 'node 2: its worker died' },
    });
  });

  const nodes = fc.array(
    fc.record({
      is: fc.constantFrom<NodeView['is']>('coming', 'ready', 'running', 'over'),
      how: fc.option(fc.constantFrom(exited(0).how, { kind: 'signaled', signal: 9 } as const), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 6 },
  );
  it('starts only whole, gives back only what never started, and is finished only when nothing of it is left', () => {
    fc.assert(
      fc.property(
        nodes,
        fc.constantFrom<GangView['phase']>('staging', 'started', 'ending'),
        fc.nat(100),
        fc.constantFrom(undefined, 'remove' as const, 'vacate' as const),
        fc.boolean(),
        (some, phase, since, cancelled, waitsForAll) => {
          const views = some.map(({ is, how }, number) => node(number, is, is === 'over' && how ? { how } : {}));
          const step = stepOf({ phase, nodes: views, since, cancelled, waitsForAll });
          if (step.do === 'go') expect(phase === 'staging' && views.every(({ is }) => is === 'ready')).toBe(true);
          if (step.do === 'release') expect(phase).toBe('staging');
          if (step.do === 'end') expect(phase).toBe('started');
          if (step.do === 'finish') expect(phase === 'ending' && views.every(({ is }) => is === 'over')).toBe(true);
        },
      ),
      { numRuns: 5000 },
    );
  });
});
