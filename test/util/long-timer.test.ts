import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startTimer } from '../../src/util/long-timer.ts';

const DAY_MS = 86_400_000;

describe('a long timer', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('calls back when its time has come, not before, however long that is', () => {
    const call = vi.fn<() => void>();
    startTimer(90 * DAY_MS, call, () => undefined);
    vi.advanceTimersByTime(90 * DAY_MS - 1);
    expect(call).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(call).toHaveBeenCalledTimes(1);
  });

  it('is ended by the last timer that it gave', () => {
    const call = vi.fn<() => void>();
    let timer: NodeJS.Timeout | undefined;
    startTimer(Number.POSITIVE_INFINITY, call, (next) => (timer = next));
    vi.advanceTimersByTime(30 * DAY_MS);
    clearTimeout(timer);
    expect(vi.getTimerCount()).toBe(0);
    expect(call).not.toHaveBeenCalled();
  });
});
