import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jobEnded, jobHeld, type Message } from '../../src/notify/messages.ts';
import { type Pending, post, type Sent } from '../../src/notify/rate.ts';

const message = (key: string, urgent = false): Message => ({
  key,
  kind: 'job',
  urgent,
  subject: `[Gryphus] ${key}`,
  body: `${key}\n`,
});
const pending = (key: string, since: number, urgent = false, to = 'jane'): Pending => ({
  to,
  since,
  message: message(key, urgent),
});

describe('when mail goes out', () => {
  it('sends an urgent message at once, and others together after the digest time', () => {
    const first = post([pending('a', 100), pending('b', 130)], [], 140);
    expect(first.mails).toEqual([]);
    expect(first.wakeAt).toBe(160);
    const second = post(first.waiting, first.sent, 160);
    expect(second.mails.map((one) => one.message.subject)).toEqual(['[Gryphus] 2 messages: a']);
    expect(post([pending('c', 100, true)], [], 100).mails).toHaveLength(1);
  });

  it('puts the urgent first in a digest', () => {
    const { mails } = post([pending('dull', 0), pending('alarm', 0, true)], [], 0);
    expect(mails[0]?.message).toMatchObject({ subject: '[Gryphus] 2 messages: alarm', urgent: true });
  });

  it('names every message of a large digest up to 200, and shows ten', () => {
    const many = Array.from({ length: 1000 }, (_, i) => pending(`job ${i}.`, 0));
    const body = post(many, [], 60).mails[0]?.message.body ?? '';
    expect(body).toContain('* job 199.\n* and 800 more\n');
    expect(body.match(/^---- /gm)).toHaveLength(10);
    expect(body).toContain('(990 more are named above, not shown.)');
  });

  it('says once what is true of many', () => {
    const held = (n: number, reason: string): Pending => {
      const job = { id: { cluster: 7, proc: n }, since: 1, command: 'x', code: 1, reason, suggestions: [] };
      return { to: 'jane', since: 0, message: jobHeld(job) };
    };
    const many = Array.from({ length: 200 }, (_, i) => held(i, i === 100 ? 'Disk full.' : 'No such queue.'));
    const { mails } = post(many, [], 60);
    const { subject, body } = mails[0]?.message ?? { subject: '', body: '' };
    expect(subject).toContain('199 jobs are held: No such queue. (7.0, 7.1,');
    expect(body.match(/^\* .*/gm)).toEqual([
      expect.stringMatching(/^\* 199 jobs are held: No such queue\. \(7\.0, .*, 7\.19 and 179 more\)$/),
      '* Job 7.100 is held: Disk full.',
    ]);
    expect(body.match(/^---- /gm)).toHaveLength(2);
    expect(mails[0]?.keys).toHaveLength(200);
  });

  it('says once how many ended', () => {
    const ended = (n: number, code: number, attributes: readonly (readonly [string, string])[] = []): Pending => {
      const how = { kind: 'exited', code } as const;
      const job = {
        id: { cluster: 7, proc: n },
        attempt: 1,
        command: 'x',
        site: 'pool',
        how,
        submittedAt: 1,
        endedAt: 2,
      };
      return { to: 'jane', since: 0, message: jobEnded({ ...job, attributes }) };
    };
    const { mails } = post([ended(0, 1), ended(1, 1), ended(2, 3), ended(3, 1, [['Seed', '4']])], [], 60);
    expect(mails[0]?.message.body.match(/^\* .*/gm)).toEqual([
      '* 2 jobs ended with status 1 (7.0, 7.1)',
      '* Job 7.2 ended with status 3',
      '* Job 7.3 ended with status 1',
    ]);
  });

  it('is never a storm, loses nothing, and repeats nothing, whatever comes and whatever the clock does', () => {
    const step = fc.record({
      wait: fc.integer({ min: -5000, max: 5000 }),
      keys: fc.array(fc.record({ key: fc.integer({ min: 0, max: 60 }), urgent: fc.boolean() }), { maxLength: 6 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), (steps, perHour) => {
        const limits = { digestSeconds: 60, perHour };
        let [now, high] = [1_000_000, 1_000_000];
        let waiting: readonly Pending[] = [];
        let sent: readonly Sent[] = [];
        const asked = new Set<string>();
        const got: string[] = [];
        const mailsAt: number[] = [];
        const run = (more: readonly Pending[]) => {
          const answer = post([...waiting, ...more], sent, now, limits);
          ({ waiting, sent } = answer);
          for (const mail of answer.mails) {
            got.push(...mail.keys);
            mailsAt.push(now);
          }
          expect(answer.wakeAt === undefined).toBe(waiting.length === 0);
          expect(answer.wakeAt ?? now + 1).toBeGreaterThan(now);
        };
        for (const one of steps) {
          now += one.wait;
          high = Math.max(high, now);
          for (const { key } of one.keys) asked.add(String(key));
          run(one.keys.map(({ key, urgent }) => pending(String(key), now, urgent)));
        }
        for (let i = 0; i < 3 && waiting.length > 0; i++) {
          now = high + (i + 1) * 4000;
          run([]);
        }
        expect(new Set(got).size).toBe(got.length);
        expect(new Set(got)).toEqual(asked);
        expect(waiting).toEqual([]);
        const forward = steps.every((one) => one.wait >= 0);
        const inHour = mailsAt.map((at) => mailsAt.filter((one) => one > at - 3600 && one <= at).length);
        expect(forward ? Math.max(0, ...inHour) : 0).toBeLessThanOrEqual(perHour);
      }),
    );
  });

  it('counts each person alone', () => {
    const all = post([pending('a', 0, true, 'x'), pending('a', 0, true, 'y')], [], 0);
    expect(all.mails.map((one) => one.to)).toEqual(['x', 'y']);
  });
});
