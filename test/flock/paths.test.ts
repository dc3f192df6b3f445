import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClassAd, Matchmaker, parseExpr } from '../../src/classad/api.ts';
import { AGREEMENT_KEYS, type Agreement, MOST_FURTHER } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { goingRequirements } from '../../src/flock/clauses.ts';
import type { Hop, LentKind } from '../../src/flock/flock-wire.ts';
import { outgoingAd } from '../../src/flock/outgoing.ts';
import { faultInWay, passable, poolName, usable, withWay } from '../../src/flock/paths.ts';
import { adFrom } from '../../src/pool/wire/ads.ts';

const SIZE = { cpus: 4, memoryMb: 1000, diskKb: 1000, gpus: 0 };
const AGREEMENT: Agreement = { ...presets(AGREEMENT_KEYS), name: 'b', keyFile: '/k', to: true };

/** The pool with this agent and name. */
const hop = (name: string): Hop => ({ agent: name, name });
const kind = (...names: string[]): LentKind => ({
  ad: { Arch: '"X86_64"' },
  machines: 1,
  each: SIZE,
  all: SIZE,
  ...(names.length > 0 ? { path: names.map(hop) } : {}),
});
const ends = (kinds: readonly LentKind[]) => kinds.map(({ path = [] }) => path.map(({ name }) => name).join(' '));
const around = { us: 'a', others: new Set(['x']) };

describe('what a pool may use of a list', () => {
  it.each([
    ['what is beyond, unless the agreement says how far', [kind(), kind('c')], 0, ['']],
    ['what is as far as the agreement says', [kind(), kind('c'), kind('c', 'd')], 1, ['', 'c']],
    ['a path that comes back to us', [kind('c'), kind('c', 'a')], 3, ['c']],
    ['a path that comes back to the partner', [kind('c', 'b'), kind('c')], 3, ['c']],
    ['a path that comes back to itself', [kind('c', 'd', 'c'), kind('c')], 3, ['c']],
    ['a path through a pool with which an agreement of our own decides', [kind('c'), kind('c', 'x')], 3, ['c']],
  ])('is not %s', (_, kinds, hops, left) => {
    expect(ends(usable(kinds, 'b', hops, around))).toEqual(left);
  });
});

describe('what a pool passes on', () => {
  const sources = (...all: [string, ...LentKind[]][]) => all.map(([name, ...kinds]) => ({ hop: hop(name), kinds }));
  it('is each pool by its shortest path, the nearest first, and no more cores than the agreement leaves', () => {
    const found = passable(sources(['c', kind('d', 'e'), kind()], ['e', kind(), kind('c')]), 'a', 'b', 3);
    expect(ends(found)).toEqual(['c', 'e']);
    expect(found.map(({ all, each }) => [all.cpus, each.cpus])).toEqual([
      [3, 3],
      [3, 3],
    ]);
    expect(passable(sources(['c', kind()]), 'a', 'b', 0)).toEqual([]);
  });

  it('is nothing on a path that comes back to whom it is offered, or that is too long', () => {
    expect(ends(passable(sources(['c', kind('a'), kind('b'), kind('d')]), 'a', 'b', 9))).toEqual(['c d']);
    expect(ends(passable(sources(['c', kind('d', 'e', 'f')]), 'a', 'b', 9))).toEqual([]);
  });
});

describe('the way of a job', () => {
  const fault = (path: string[], to: string[]) =>
    faultInWay({ path: path.map(hop), to: to.map(hop) }, 'b', around)?.message;
  it.each([
    [[], [], undefined],
    [['h'], ['c', 'd'], undefined],
    [['a'], [], /comes back/],
    [['h'], ['h'], /comes back/],
    [[], ['c', 'a'], /comes back/],
    [['b'], [], /comes back/],
    [['h', 'i'], ['c', 'd'], /more than 3 pools/],
    [['x'], [], /jobs of x come from that pool itself/],
  ] as const)('%j, then b, then us, then %j', (path, to, message) => {
    const found = fault([...path], [...to]);
    if (message) expect(found).toMatch(message);
    else expect(found).toBeUndefined();
  });

  it('keeps it away from all machines but those to which it is passed on, and is not asked about there', () => {
    const hostile = 'true) || (true';
    const ad = withWay({ Requirements: 'TARGET.Arch == "X86_64"' }, 'p', { path: [hop('h')], to: [hop('c')] });
    if (!ad) throw new Error('no ad');
    expect([ad['FlockPath'], ad['FlockTo']]).toEqual(['"h via p"', '"c"']);
    expect(withWay({ Requirements: hostile }, 'p', { path: [], to: [hop('c')] })).toBeUndefined();
    const matchmaker = new Matchmaker({ now: 0 });
    const slot = (way: string, passes: boolean) =>
      adFrom({
        Arch: '"X86_64"',
        FlockWay: JSON.stringify(way),
        FlockPasses: String(passes),
        Requirements: goingRequirements(AGREEMENT, undefined),
      });
    const job = adFrom({ ...ad, FlockFrom: '"p"' });
    expect(matchmaker.matches(job, slot('c', true))).toBe(true);
    for (const [way, passes] of [
      ['d', true],
      ['c d', true],
      ['c', false],
    ] as const)
      expect(matchmaker.matches(job, slot(way, passes))).toBe(false);
    expect(matchmaker.matches(job, adFrom({ Arch: '"X86_64"', Requirements: 'true' }))).toBe(false);
    const sent = outgoingAd({ partner: 'c', beyond: [], agents: ['c'] }, ad)['Requirements'] ?? '';
    const there = adFrom({ Arch: '"X86_64"', FlockWay: '"z"' });
    expect(matchmaker.evaluate(parseExpr(sent, 'old'), new ClassAd(), there)).toBe(true);
  });
});

/** Who borrows from whom in a flock, and what each lets be passed on. */
interface Edge {
  readonly from: number;
  readonly to: number;
  readonly hops: number;
  readonly forwarded: boolean;
}
const POOLS = 6;
const edges = fc.uniqueArray(
  fc.record({
    from: fc.nat(POOLS - 1),
    to: fc.nat(POOLS - 1),
    hops: fc.nat(MOST_FURTHER),
    forwarded: fc.boolean(),
  }),
  { selector: ({ from, to }) => `${from} ${to}`, maxLength: 20 },
);

it('in any flock, lists come to rest, no path comes back, and each pool on it takes the job that follows it', () => {
  fc.assert(
    fc.property(edges, fc.array(fc.nat(99), { minLength: 5, maxLength: 20 }), (all, order) => {
      const graph: readonly Edge[] = all.filter(({ from, to }) => from !== to);
      const partners = (one: number) =>
        new Set(graph.flatMap(({ from, to }) => (from === one ? [to] : to === one ? [from] : [])));
      const others = (one: number, but: number) =>
        new Set([...partners(one)].filter((other) => other !== but).map((other) => `p${other}`));
      // What `to` told `from` last, by their edge.
      const lists = new Map<Edge, readonly LentKind[]>();
      const seen = (edge: Edge) =>
        usable(lists.get(edge) ?? [], `p${edge.to}`, edge.hops, {
          us: `p${edge.from}`,
          others: others(edge.from, edge.to),
        });
      const tell = (edge: Edge): boolean => {
        const sources = graph
          .filter((next) => next.from === edge.to && next.forwarded)
          .map((next) => ({ hop: { agent: `p${next.to}`, name: `p${next.to}` }, kinds: seen(next) }));
        const told = [kind(), ...passable(sources, `p${edge.from}`, `p${edge.to}`, 99)];
        const isNew = JSON.stringify(told) !== JSON.stringify(lists.get(edge));
        lists.set(edge, told);
        return isNew;
      };
      for (const n of order) {
        const edge = graph[n % Math.max(1, graph.length)];
        if (edge) tell(edge);
      }
      let rounds = 0;
      while (graph.map(tell).some(Boolean)) expect(++rounds).toBeLessThanOrEqual(MOST_FURTHER + 2);
      for (const edge of graph)
        for (const { path = [] } of seen(edge)) {
          const way = [`p${edge.from}`, `p${edge.to}`, ...path.map(({ agent }) => agent)];
          expect(new Set(way).size).toBe(way.length);
          expect(poolName(`p${edge.to}`, path).split(' via ').reverse()).toEqual(way.slice(1));
          for (let at = 1; at < way.length; at++) {
            const [before, here, next] = [way[at - 1] ?? '', way[at] ?? '', way[at + 1]];
            const one = Number(here.slice(1));
            const link = graph.find(({ from, to }) => `p${from}` === here && `p${to}` === next);
            if (next !== undefined) expect(link?.forwarded).toBe(true);
            const path = way.slice(0, at - 1).map(hop);
            const job = { path, to: way.slice(at + 1).map(hop) };
            expect(faultInWay(job, before, { us: here, others: others(one, Number(before.slice(1))) })).toBeUndefined();
          }
        }
    }),
    { numRuns: 500 },
  );
});
