import { expect, it } from 'vitest';
import { Attrs } from '../../src/job/attrs.ts';
import type { LifeEvent, State } from '../../src/job/life.ts';
import type { Pending } from '../../src/notify/rate.ts';
import { MailListener } from '../../src/scheduler/mail-listener.ts';

interface Told {
  readonly event: LifeEvent;
  readonly to: State;
  readonly notification?: number;
  readonly by?: string;
  readonly settings?: object;
}

/** How many mails such a step sends. */
async function mails({ event, to, notification = 0, by, settings = {} }: Told): Promise<number> {
  const pending: Pending[] = [];
  const job = {
    id: { cluster: 1, proc: 0 },
    state: to,
    attempt: 1,
    site: 's',
    attrs: new Attrs({ Cmd: '"/bin/true"', JobNotification: String(notification), HoldReason: '"r"', ExitCode: '0' }),
  };
  const listener = new MailListener({
    queue: { get: async () => [job] },
    settings: { 'notify.email': 'me@example.org', 'notify.problems': true, ...settings },
    outbox: { put: async (some: readonly Pending[]) => void pending.push(...some) },
    alarms: { raise: async () => undefined },
  } as never);
  const info = by === undefined ? {} : { info: { by } };
  const step = {
    type: 'transition',
    v: 1,
    at: 1000,
    job: '1.0',
    event,
    from: 'running',
    to,
    attempt: 1,
    set: {},
    ...info,
  };
  await listener.hear([{ id: '1-0', event: step as never }]);
  return pending.length;
}

it('tells of problems once an address is configured, and of completion only where it was asked for', async () => {
  expect(await mails({ event: 'stop', to: 'stopping' })).toBe(1);
  expect(await mails({ event: 'stop', to: 'stopping', settings: { 'notify.email': undefined } })).toBe(0);
  expect(await mails({ event: 'stop', to: 'stopping', settings: { 'notify.problems': false } })).toBe(0);
  expect(await mails({ event: 'complete', to: 'completed' })).toBe(0);
  expect(await mails({ event: 'complete', to: 'completed', notification: 2 })).toBe(1);
});

it('tells of a hold by the policy of the job, not of one by the user', async () => {
  expect(await mails({ event: 'hold', to: 'holding', by: 'policy' })).toBe(1);
  expect(await mails({ event: 'hold', to: 'holding' })).toBe(0);
});
