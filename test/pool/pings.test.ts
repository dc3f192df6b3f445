import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Pings } from '../../src/pool/wire/pings.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('pings', () => {
  /** What is sent and said in so many seconds; `answers`: whether the other side does. */
  function pinging(seconds: number, isIdle: () => boolean, answers: boolean) {
    const channel = { heardAt: 0, close: vi.fn() };
    let sent = 0;
    const pings = new Pings(() => performance.now());
    const send = () => {
      sent += 1;
      if (answers) channel.heardAt = performance.now() + 1;
    };
    pings.start(channel, 1000, send, 'silent', isIdle);
    vi.advanceTimersByTime(seconds * 1000 + 500);
    pings.stop();
    return { sent, closed: channel.close.mock.calls.length > 0 };
  }

  it('are sent each interval, and half as often while the connection is idle', () => {
    expect(pinging(20, () => false, true)).toEqual({ sent: 20, closed: false });
    expect(pinging(20, () => true, true)).toEqual({ sent: 10, closed: false });
  });

  it('end a silent connection, idle or not', () => {
    for (const isIdle of [true, false]) expect(pinging(20, () => isIdle, false).closed).toBe(true);
  });
});
