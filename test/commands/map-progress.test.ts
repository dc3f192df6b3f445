import { describe, expect, it } from 'vitest';
import { progressText } from '../../src/commands/map-progress.ts';

describe('the progress of a map', () => {
  const at = (done: number, seconds: number) => ({ done, failed: 0, total: 40, seconds });

  it('is a bar, and how long it will take, where that is asked for', () => {
    expect(progressText({ done: 3, failed: 1, total: undefined, seconds: 1 }, false, false)).toBe(
      '3 tasks done, 1 failed',
    );
    expect(progressText({ ...at(10, 1), failed: 2 }, true, false)).toMatch(
      /^\[█{8}░{22}\] 25 % 10 of 40 done, 2 failed$/,
    );
    expect(progressText(at(10, 20), false, true)).toBe('10 of 40 done, 1 min left');
    expect(progressText(at(20, 5), false, true)).toBe('20 of 40 done, 5 s left');
    expect(progressText(at(4, 1000), true, true)).toMatch(/ 10 % 4 of 40 done, 2 h 30 min left$/);
    expect(progressText(at(0, 5), false, true)).toBe('0 of 40 done');
  });
});
