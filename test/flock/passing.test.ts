import { describe, expect, it } from 'vitest';
import { AGREEMENT_KEYS, type Agreement } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { Balance } from '../../src/flock/balance.ts';
import { type FlockMessage, type Hop, type LentKind, readFlockMessage } from '../../src/flock/flock-wire.ts';
import type { Lent } from '../../src/flock/lent-journal.ts';
import { PartnerState } from '../../src/flock/partner.ts';
import { type Neighbour, Passing } from '../../src/flock/passing.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import { FRAME_LIMITS } from '../../src/pool/wire/direct-wire.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { until } from '../agent/agent.ts';
import { JUST_TRUE } from '../pool/just-true.ts';
import { pair } from '../pool/wire-pair.ts';

const KEY: AttemptKey = 'a.1.0.1';
const SIZE = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
const hop = (name: string): Hop => ({ agent: name, name });
const kind: LentKind = { ad: { Arch: '"X86_64"' }, machines: 1, each: SIZE, all: SIZE };

function agreement(name: string, terms: Partial<Agreement>): Agreement {
  return { ...presets(AGREEMENT_KEYS), name, keyFile: '/k', ...terms };
}

/** The gateway of `b` between `a`, who borrows, and `c`, who lends. */
function middle() {
  const neighbour = (name: string, terms: Partial<Agreement>): Neighbour & { takesForwarded: boolean } => ({
    name,
    agent: name,
    partner: { agreement: agreement(name, terms), key: { id: '', key: '' } },
    closed: undefined,
    takesForwarded: true,
  });
  const [a, c] = [neighbour('a', { from: true, forward: ['c'] }), neighbour('c', { to: true })];
  const shown = { offered: () => [kind], waiting: false };
  const request = { key: KEY, owner: 'u@a', prio: 0, size: SIZE, lease: 600, ad: {}, spec: JUST_TRUE };
  const lent: Lent = {
    partner: 'a',
    round: 3,
    request,
    passage: { path: [], to: [hop('c')] },
    phase: 'committed',
    at: 0,
  };
  const held = new Set<AttemptKey>();
  const said: FlockMessage[] = [];
  const back: string[] = [];
  const time = { now: 0 };
  const passing = new Passing({
    agent: 'b',
    partners: new Map([a, c].map((one) => [one.name, one])),
    lender: () => ({ jobs: [lent], get: () => lent, turnBack: (_, why) => void back.push(why) }),
    // What it holds is not looked at.
    borrower: () => ({ get: (key) => (held.has(key) ? ({} as never) : undefined) }),
    shown: () => shown,
    tell: (_, message) => void said.push(message),
    clock: () => time.now,
  });
  return { a, c, shown, lent, held, said, back, time, passing };
}

describe('what is offered of another pool', () => {
  it('is what that pool lets be passed on', () => {
    const { a, c, passing } = middle();
    expect(passing.offers(a, 9)).toEqual([{ ...kind, path: [hop('c')] }]);
    c.takesForwarded = false;
    expect(passing.offers(a, 9)).toEqual([]);
  });

  it('is nothing while our own jobs wait for it, and nothing that the agreement does not name', () => {
    const { a, shown, passing } = middle();
    expect(passing.offers({ ...a, partner: { ...a.partner, agreement: agreement('a', { from: true }) } }, 9)).toEqual(
      [],
    );
    shown.waiting = true;
    expect(passing.offers(a, 9)).toEqual([]);
  });
});

describe('a job that is passed on', () => {
  it('is said to be on its way as long as the next pool has it and has not started it', () => {
    const { lent, held, said, time, passing } = middle();
    held.add(KEY);
    for (; time.now <= 25_000; time.now += 1000) passing.tick();
    expect(said).toEqual(Array.from({ length: 3 }, () => ({ t: 'onward', key: KEY, round: 3 })));
    lent.startedAt = 1;
    for (; time.now <= 60_000; time.now += 1000) passing.tick();
    expect(said).toHaveLength(3);
  });

  it('goes back when there is no machine for it for half a minute', () => {
    const { held, back, time, passing } = middle();
    held.add(KEY);
    for (; time.now <= 60_000; time.now += 1000) passing.tick();
    held.delete(KEY);
    for (; time.now <= 90_000; time.now += 1000) passing.tick();
    expect(back).toEqual([]);
    for (; time.now <= 93_000; time.now += 1000) passing.tick();
    expect(back).toEqual(['partner c has no machine for it any more']);
  });

  it('may not go on when the agreement does not name the next pool any more, or does not take what is passed on', () => {
    const { lent, passing } = middle();
    expect(passing.expulsion(agreement('a', { forward: ['c'] }), lent)).toBeUndefined();
    expect(passing.expulsion(agreement('a', { forward: ['d'] }), lent)).toMatchObject({ clause: 'forward' });
    const there = { ...lent, passage: { path: [hop('h')], to: [] } };
    expect(passing.expulsion(agreement('a', { forwarded: true }), there)).toBeUndefined();
    expect(passing.expulsion(agreement('a', {}), there)).toMatchObject({ clause: 'forwarded' });
  });
});

it.each([
  [3, { t: 'list', kinds: [kind] }],
  [4, { t: 'list', kinds: [kind, { ...kind, path: [hop('c')] }], forwarded: true }],
])('a partner of version %i is told what it knows', async (version, list) => {
  const state = new PartnerState({
    agent: 'b',
    partner: { agreement: agreement('a', { from: true, forwarded: true }), key: { id: 'k', key: '' } },
    balance: new Balance(),
    pinned: undefined,
    onPinned: () => undefined,
    dial: () => undefined,
    take: () => undefined,
    onUp: () => undefined,
    onDown: () => undefined,
    onConfirmed: () => undefined,
    isBusy: () => false,
    around: () => ({ us: 'b', others: new Set() }),
    mayConnect: () => false,
    log: () => undefined,
  });
  const [here, there] = pair();
  const channel = new Channel<FlockMessage, FlockMessage>(there, readFlockMessage, FRAME_LIMITS);
  const heard: FlockMessage[] = [];
  channel.open(
    (message) => void heard.push(message),
    () => undefined,
  );
  state.link.accept(here);
  channel.send({ t: 'hello', version, agent: 'a', name: 'b' });
  await until('the link', () => state.link.up || undefined);
  state.list([kind], undefined, [{ ...kind, path: [hop('c')] }]);
  expect(await until('the list', () => heard.find(({ t }) => t === 'list'))).toEqual(list);
  state.close('over');
});
