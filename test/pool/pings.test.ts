import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Pings } from '../../src/pool/wire/pings.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('pings', () => {
  /** What is sent and said in so many seconds; `answers`: whether the other side does. */
  function pinging(seconds: number, restMs: () => number, answers: boolean) {
    const channel = { heardAt: 0, close: vi.fn() };
    let sent = 0;
    const pings = new Pings(() => performance.now());
    const send = () => {
      sent += 1;
      if (answers) channel.heardAt = performance.now() + 1;
    };
    pings.start(channel, 1000, send, 'silent', restMs);
    vi.advanceTimersByTime(seconds * 1000 + 500);
    pings.stop();
    return { sent, closed: channel.close.mock.calls.length > 0 };
  }

  it('are sent each interval, and more rarely while the connection rests', () => {
    expect(pinging(20, () => 0, true)).toEqual({ sent: 20, closed: false });
    expect(pinging(20, () => 2000, true)).toEqual({ sent: 10, closed: false });
    expect(pinging(20, () => 5000, true)).toEqual({ sent: 4, closed: false });
  });

  it('are sent each interval again as soon as the rest is over', () => {
    let restMs = 60_000;
    setTimeout(() => {
      restMs = 0;
    }, 9700);
    expect(pinging(20, () => restMs, true)).toEqual({ sent: 11, closed: false });
  });

  it('end a silent connection, at rest or not, but not one that was not asked for long', () => {
    for (const restMs of [0, 2000, 5000]) expect(pinging(20, () => restMs, false).closed).toBe(true);
    expect(pinging(18, () => 20_000, false)).toEqual({ sent: 0, closed: false });
  });
});
