import { expect, it } from 'vitest';
import { Skew } from '../../src/jobmanager/skew.ts';
import type { Report } from '../../src/site/contract.ts';

const key = 'a.1.0.1';
const ran: Report = { key, is: 'ended', how: { kind: 'exited', code: 0 }, startedAt: 1000, endedAt: 1010 };

it('times of a site whose clock is off are corrected by ours', () => {
  const skew = new Skew();
  skew.heard(1000, 1600, 1605);
  expect(skew.mended(ran)).toMatchObject({ startedAt: 1600, endedAt: 1610 });
  expect(skew.mended({ key, is: 'running', since: 1000 })).toMatchObject({ since: 1600 });
  // An answer that took longer proves less, and changes little.
  skew.heard(1100, 1699, 1730);
  expect(skew.mended(ran)).toMatchObject({ startedAt: 1600 });
  skew.heard(3000, 2100, 2101);
  expect(skew.mended(ran)).toMatchObject({ startedAt: 101 });
});

it('a slow answer, or a clock that is off by little, proves nothing', () => {
  const skew = new Skew();
  skew.heard(1000, 1000.9, 1060);
  expect(skew.mended(ran)).toBe(ran);
  skew.heard(1080, 1060, 1061);
  expect(skew.mended(ran)).toBe(ran);
  skew.heard(500, 1060, 1061);
  skew.heard(1062, 1062, 1063);
  expect(skew.mended(ran)).toBe(ran);
});
