import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AGREEMENT_KEYS, type Agreement } from '../../src/config/agreements.ts';
import { presets } from '../../src/config/table.ts';
import { Answers } from '../../src/pool/wire/answers.ts';
import { Borrower } from '../../src/flock/borrower.ts';
import { recoverBorrowed } from '../../src/flock/borrowed-journal.ts';
import type { FlockMessage } from '../../src/flock/flock-wire.ts';
import { incoming } from '../../src/flock/incoming.ts';
import { Lender } from '../../src/flock/lender.ts';
import { recoverLent } from '../../src/flock/lent-journal.ts';
import { plainKind } from '../../src/flock/lists.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptRequest } from '../../src/pool/wire/client-wire.ts';
import type { FromWorker } from '../../src/pool/wire/wire.ts';
import { SLOW } from '../slow.ts';
import { JUST_TRUE } from '../pool/just-true.ts';
import { going, TwoSides } from './two-sides.ts';

const KEY: AttemptKey = 'a.1.0.1';
const RUNS = SLOW ? 20_000 : 300;
const AGREEMENT: Agreement = { ...presets(AGREEMENT_KEYS), name: 'p', keyFile: '/k', from: true };
const SIZE = { cpus: 1, memoryMb: 1, diskKb: 1, gpus: 0 };
const JOURNAL = { add: () => undefined, whenSaved: (call: () => void) => call() };

/** Keys of its own jobs, of another partner's and of ours. */
const keys = fc.constantFrom<AttemptKey>('theirs.1.0.1', 'theirs.1.0.2', 'theirs.2.0.1', 'other.1.0.1', 'ours.1.0.1');
const rounds = fc.integer({ min: 0, max: 3 });
const words = fc.constantFrom('', 'x', '../../etc/passwd', 'a\u001b[2Jb', 'x'.repeat(900));

describe('whatever a partner sends of jobs that it wants to run here', () => {
  const ask = fc.oneof(
    fc.record({
      t: fc.constant('sync' as const),
      held: fc.array(fc.record({ key: keys, round: rounds, committed: fc.boolean() }), { maxLength: 3 }),
    }),
    fc.record({
      t: fc.constant('prepare' as const),
      key: keys,
      round: rounds,
      user: fc.constantFrom('ann', 'root', '', '../x', 'a b'),
      ad: fc.dictionary(
        fc.constantFrom('Owner', 'FlockFrom', 'flockRunAs', 'owner', 'Note'),
        fc.constantFrom('"root"', 'undefined', '((((', 'time()'),
      ),
      size: fc.record({
        cpus: fc.constantFrom(1, 0, -1, 1e9, 0.5),
        memoryMb: fc.constantFrom(1, -5, 1e300),
        diskKb: fc.constant(1),
        gpus: fc.constant(0),
      }),
      lease: fc.constantFrom(0, 60, 1e12),
      spec: fc.constant(JUST_TRUE),
    }),
    fc.record({ t: fc.constant('commit' as const), key: keys, round: rounds }),
    fc.record({
      t: fc.constant('cancel' as const),
      key: keys,
      round: rounds,
      how: fc.constantFrom('remove' as const, 'vacate' as const, 'if-not-started' as const),
      message: words,
    }),
    fc.record({
      t: fc.constantFrom('suspend' as const, 'resume' as const, 'checkpoint' as const),
      key: keys,
      round: rounds,
    }),
    fc.record({ t: fc.constant('forget' as const), keys: fc.array(keys, { maxLength: 3 }) }),
    fc.record({ t: fc.constant('follow' as const), key: keys, round: rounds, stdout: fc.nat(), stderr: fc.nat() }),
  );

  it('only what was prepared and committed by the agreement is run, and nobody else’s job is touched', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(ask, { maxLength: 30 }), async (messages) => {
        const submitted: AttemptRequest[] = [];
        const touched: AttemptKey[] = [];
        const lender = new Lender(
          {
            journal: JOURNAL,
            tell: () => true,
            admit: (_, asked) => {
              const made = incoming(asked, AGREEMENT, 'theirs');
              return 'clause' in made ? made : { request: { ...made.request, spec: asked.spec } };
            },
            bring: () => Promise.resolve(),
            pool: {
              submit: (request) => void submitted.push(request),
              cancel: (key) => void touched.push(key),
              steer: (key) => void touched.push(key),
              forget: (all, done) => {
                touched.push(...all);
                done();
              },
              follow: (key) => void touched.push(key),
            },
            discard: () => undefined,
            changed: () => undefined,
            refused: () => undefined,
            clock: () => 0,
            now: () => 0,
            log: () => undefined,
          },
          recoverLent(
            [
              {
                r: 'p',
                partner: 'q',
                round: 1,
                request: { key: 'other.1.0.1', owner: 'u@q', ad: {}, size: SIZE, lease: 1, prio: 0, spec: JUST_TRUE },
              },
              { r: 'c', key: 'other.1.0.1' },
            ],
            0,
          ),
        );
        for (const message of messages) {
          await lender.hear('p', message);
          lender.tick('p', 0, () => undefined);
        }
        const asked = (t: 'prepare' | 'commit') =>
          new Set(messages.flatMap((message) => (message.t === t ? [`${message.key} ${message.round}`] : [])));
        for (const { key, owner, ad } of submitted) {
          expect(key.startsWith('theirs.')).toBe(true);
          expect(owner).toMatch(/^(ann|root)@p$/);
          expect(ad).toMatchObject({
            Owner: `"${owner}"`,
            FlockFrom: '"p"',
            FlockRunAs: '"auto"',
            AcctGroup: '"nice-user"',
          });
          expect([...asked('commit')].some((one) => one.startsWith(`${key} `) && asked('prepare').has(one))).toBe(true);
        }
        expect(touched.filter((key) => !key.startsWith('theirs.'))).toEqual([]);
        expect(lender.get('other.1.0.1')?.partner).toBe('q');
        await turn();
      }),
      { numRuns: RUNS },
    );
  });
});

describe('whatever a partner says of jobs that it was given', () => {
  const at = { key: keys, round: rounds };
  const say = fc.oneof(
    fc.record({ t: fc.constant('prepared' as const), ...at }),
    fc.record({ t: fc.constant('refused' as const), ...at, clause: words, message: words }),
    fc.record({ t: fc.constant('started' as const), ...at, at: fc.nat(), host: words }),
    fc.record({ t: fc.constantFrom('suspended' as const, 'resumed' as const), ...at }),
    fc.record({
      t: fc.constant('ended' as const),
      ...at,
      ending: fc.record({
        how: fc.constantFrom(
          { kind: 'exited' as const, code: 0 },
          { kind: 'by-site' as const, cause: 'preempted' as const, message: 'x' },
        ),
      }),
      inline: fc.record({ stdout: fc.nat(2000), stderr: fc.nat(2000) }),
    }),
    fc.record({ t: fc.constant('gone' as const), ...at, message: words }),
    fc.record({ t: fc.constant('unknown' as const), ...at }),
    fc.record({
      t: fc.constant('chunk' as const),
      ...at,
      stream: fc.constantFrom('stdout' as const, 'stderr' as const),
      offset: fc.nat(3000),
    }),
  );

  it('a job ends once, only after it was committed, and no more output comes than agreed', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(fc.tuple(say, fc.nat(2000)), { maxLength: 40 }), (streams, messages) => {
        const told: FlockMessage[] = [];
        const said: FromWorker[] = [];
        let bytes = 0;
        const borrower = new Borrower(
          {
            journal: JOURNAL,
            say: (_, message, part) => {
              said.push(message);
              if (message.t === 'chunk') bytes += part?.length ?? 0;
            },
            tell: (_, message) => told.push(message) > 0,
            changed: () => undefined,
            mostResult: () => 1000,
            fault: () => undefined,
            refused: () => undefined,
            clock: () => 0,
            log: () => undefined,
          },
          recoverBorrowed([]),
        );
        const start = { t: 'start', claim: 'c', kind: 'k', size: SIZE, spec: JUST_TRUE, lease: 600, ad: {} } as const;
        borrower.start(going('p', 'w'), { ...start, key: 'theirs.1.0.1' });
        borrower.start(going('q', 'v'), { ...start, key: 'other.1.0.1' });
        borrower.order({ t: 'follow', key: 'theirs.1.0.1', stdout: 0, stderr: 0 });
        if (streams) {
          borrower.hear('p', { t: 'prepared', key: 'theirs.1.0.1', round: 1 }, Buffer.alloc(0));
          for (const offset of [0, 600, 1200, 1800])
            borrower.hear(
              'p',
              { t: 'chunk', key: 'theirs.1.0.1', round: 1, stream: 'stdout', offset },
              Buffer.alloc(600),
            );
        }
        for (const [message, length] of messages) borrower.hear('p', message, Buffer.alloc(length));
        const of = (t: FromWorker['t'], key: string) =>
          said.filter((one) => one.t === t && 'key' in one && one.key === key).length;
        expect(of('ended', 'theirs.1.0.1') + of('gone', 'theirs.1.0.1')).toBeLessThanOrEqual(1);
        if (of('ended', 'theirs.1.0.1') + of('started', 'theirs.1.0.1') > 0)
          expect(told).toContainEqual({ t: 'commit', key: 'theirs.1.0.1', round: 1 });
        expect(said.filter((one) => 'key' in one && one.key !== 'theirs.1.0.1')).toEqual([]);
        expect(borrower.get('other.1.0.1')?.phase).toBe('asked');
        expect(bytes).toBeLessThanOrEqual(2000);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('a partner', () => {
  it('that does not answer when it is asked to take a job does not keep it', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle(2, true);
    two.clock = 59_000;
    two.borrower.tick('p', 0);
    expect(two.isGone(KEY)).toBe(false);
    two.clock = 61_000;
    two.borrower.tick('p', 0);
    await two.settle(1, true);
    expect([two.isGone(KEY), two.refusals]).toEqual([true, ['start']]);
  });

  it('that is gone for good leaves nothing of its jobs behind, and none that comes back in time loses them', async () => {
    const two = new TwoSides();
    two.grant(KEY);
    await two.settle();
    two.pool.start(KEY);
    two.pool.end(KEY);
    await two.settle();
    two.lender.tick('p', 1919, () => undefined);
    await two.settle();
    expect(two.lender.get(KEY)).toBeDefined();
    two.lender.tick('p', 1921, () => undefined);
    await two.settle();
    expect([two.lender.get(KEY), two.pool.jobs.size]).toEqual([undefined, 0]);
  });

  it('that asks for more than it reads gets no more answers, and may not wait for many', async () => {
    const link = { up: true, backlog: 0 };
    const answers = new Answers(link);
    let made = 0;
    const ask = () =>
      answers.make(() => {
        made += 1;
        link.backlog += 1 << 20;
        return Promise.resolve();
      });
    const all = Array.from({ length: 256 }, ask);
    expect(() => ask()).toThrow(/asks too much/);
    await delay(100);
    expect(made).toBeLessThanOrEqual(9 + 4);
    link.up = false;
    await Promise.all(all);
    expect(made).toBeLessThanOrEqual(9 + 4);
  });

  it('cannot say more of its machines than what they are', () => {
    const size = { cpus: 1e300, memoryMb: -1, diskKb: 5, gpus: 0 };
    const ad = {
      Arch: '"X86_64"',
      OpSys: 'strcat("a", repeat(9))',
      START: 'true',
      start: 'true',
      GryphusSite: '"home"',
      Rank: '1e9',
      OpSysName: `"${'x'.repeat(999)}"`,
      __proto__: '1',
    };
    expect(plainKind({ ad, machines: 1e12, each: size, all: size })).toEqual({
      ad: { Arch: '"X86_64"' },
      machines: 1e9,
      each: { cpus: 1e9, memoryMb: 0, diskKb: 5, gpus: 0 },
      all: { cpus: 1e9, memoryMb: 0, diskKb: 5, gpus: 0 },
    });
  });
});
