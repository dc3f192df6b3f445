import { describe, expect, it } from 'vitest';
import type { Attempt } from '../../src/pool/central-manager/attempts.ts';
import { Autoclusters, timeNeeded } from '../../src/pool/central-manager/autoclusters.ts';
import { folded } from '../../src/pool/central-manager/significance.ts';
import { JUST_TRUE } from './just-true.ts';

const attempt = (i: number): Attempt => ({
  key: `a.1.${i}.1`,
  client: 'me',
  request: {
    key: `a.1.${i}.1`,
    owner: 'me',
    ad: { Requirements: 'true', Rank: '0', Colour: `"${i % 2 === 0 ? 'red' : 'blue'}"` },
    size: { cpus: 1, memoryMb: 100, diskKb: 0, gpus: 0 },
    prio: 0,
    lease: 2400,
    spec: JUST_TRUE,
  },
  kind: undefined,
  order: i,
  submitted: 0,
  phase: 'idle',
});

it("a user's jobs of one kind are served by priority, submission and id, also one that comes back", () => {
  const autoclusters = new Autoclusters();
  const job = (order: number, key: Attempt['key'], submitted: number, prio = 0): Attempt => {
    const one = attempt(0);
    return { ...one, key, order, submitted, request: { ...one.request, key, prio } };
  };
  const all = [
    job(0, 'a.7.10.1', 100),
    job(1, 'a.7.9.1', 100),
    job(2, 'a.8.0.1', 200),
    job(3, 'a.9.0.1', 300, 5),
    // It was evicted.
    job(4, 'a.7.2.4', 100),
    job(5, 'a.6.0.2', 50),
  ];
  for (const one of all) autoclusters.enqueue(one);
  const kind = all[0]?.kind;
  expect(kind?.queue.map(({ key }) => key)).toEqual([
    'a.9.0.1',
    'a.6.0.2',
    'a.7.2.4',
    'a.7.9.1',
    'a.7.10.1',
    'a.8.0.1',
  ]);
});

it('a job that goes on elsewhere needs no worker that lasts until its end', () => {
  const autoclusters = new Autoclusters();
  const needs = (ad: Record<string, string>, walltimeSeconds?: number): number => {
    const one = attempt(0);
    const spec = walltimeSeconds === undefined ? one.request.spec : { ...one.request.spec, walltimeSeconds };
    const another = { ...one, request: { ...one.request, ad: { ...one.request.ad, ...ad }, spec } };
    autoclusters.enqueue(another);
    if (!another.kind) throw new Error('no kind');
    const seconds = timeNeeded(another.kind);
    autoclusters.take(another.kind);
    autoclusters.learn(another.kind, 1000);
    return seconds;
  };
  expect(needs({})).toBe(90);
  expect(needs({})).toBe(1090);
  expect(needs({}, 500)).toBe(590);
  for (const ad of [{ WantCheckpoint: 'true' }, { WhenToTransferOutput: '"ON_EXIT_OR_EVICT"' }])
    for (const seconds of [undefined, 500]) expect(needs(ad, seconds)).toBeLessThan(90);
  expect(needs({ WhenToTransferOutput: '"ON_EXIT"' })).toBe(1090);
});

describe('kinds of jobs that a new machine tells apart', () => {
  it('have each attempt once: a claim of an old kind takes nothing, what goes back is found', () => {
    const autoclusters = new Autoclusters();
    const all = [0, 1, 2, 3].map(attempt);
    for (const one of all) autoclusters.enqueue(one);
    const old = all[0]?.kind;
    if (!old) throw new Error('no kind');
    const granted = autoclusters.take(old);
    expect(autoclusters.wanted().map(({ waiting }) => waiting)).toEqual([3]);
    const ad = { Requirements: 'TARGET.Colour == "red"', START: 'true', Rank: '0' };
    autoclusters.significance.learn('machine', ad, folded(ad));
    autoclusters.enqueue(attempt(4));
    expect(autoclusters.take(old)).toBeUndefined();
    if (granted) autoclusters.enqueue(granted);
    const waiting = autoclusters.wanted().map(({ kind }) => kind.queue.map(({ order }) => order));
    expect(waiting).toEqual([
      [0, 2, 4],
      [1, 3],
    ]);
  });
});
