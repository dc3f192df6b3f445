import { describe, expect, it } from 'vitest';
import { paceOf } from '../../src/jobmanager/look.ts';

const own = { lookAgain: 1000, lookEvery: 30_000 };

describe('how often a queue is asked', () => {
  it("is as its site says, also rarer than the batch system's own pace", () => {
    expect(paceOf(own, { lookMin: 5000, lookMax: 600_000 })).toEqual({ soonest: 5000, latest: 600_000 });
    expect(paceOf(own, { lookMin: 120_000, lookMax: 60_000 })).toEqual({ soonest: 120_000, latest: 120_000 });
  });

  it("is the batch system's own where nothing is said, and never more often than it bears", () => {
    expect(paceOf(own, {})).toEqual({ soonest: 1000, latest: 30_000 });
    expect(paceOf(own, { lookMin: 10, lookMax: 10 })).toEqual({ soonest: 1000, latest: 1000 });
  });
});
