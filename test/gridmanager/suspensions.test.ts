import { expect, it } from 'vitest';
import { suspensionAttributes } from '../../src/gridmanager/suspensions.ts';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';
import type { Report } from '../../src/site/contract.ts';

const key = 'a.1.0.1';
const RUNS: Report = { key, is: 'running' };
const STOPS: Report = { key, is: 'suspended' };
const ENDS: Report = { key, is: 'ended', how: { kind: 'exited', code: 0 } };
const EVICTED: Report = { key, is: 'ended', how: { kind: 'by-site', cause: 'preempted', message: 'away' } };

function after(steps: readonly (readonly [Parameters<typeof suspensionAttributes>[1], Report, number])[]): AttrTexts {
  let ad: AttrTexts = { TotalSuspensions: '0', CumulativeSuspensionTime: '0', CommittedSuspensionTime: '0' };
  for (const [event, report, now] of steps) ad = { ...ad, ...suspensionAttributes(new Attrs(ad), event, report, now) };
  return ad;
}

it('counts the suspensions of a job and how long they were', () => {
  expect(
    after([
      ['started', RUNS, 100],
      ['suspended', STOPS, 110],
      ['started', RUNS, 130],
      ['suspended', STOPS, 200],
      ['ended', ENDS, 205],
    ]),
  ).toEqual({
    TotalSuspensions: '2',
    LastSuspensionTime: '0',
    CumulativeSuspensionTime: '25',
    UncommittedSuspensionTime: '0',
    CommittedSuspensionTime: '25',
  });
});

it('commits nothing of a run that was evicted', () => {
  expect(
    after([
      ['suspended', STOPS, 110],
      ['ended', EVICTED, 410],
      ['started', RUNS, 500],
      ['ended', ENDS, 600],
    ]),
  ).toMatchObject({ TotalSuspensions: '1', CumulativeSuspensionTime: '300', CommittedSuspensionTime: '0' });
});

it('says nothing of what brings nothing new, and never goes backwards with the clock', () => {
  expect(suspensionAttributes(new Attrs({}), undefined, RUNS, 5)).toEqual({});
  expect(suspensionAttributes(new Attrs({}), 'started', RUNS, 5)).toEqual({});
  expect(suspensionAttributes(new Attrs({ LastSuspensionTime: '500' }), 'started', RUNS, 5)).toMatchObject({
    CumulativeSuspensionTime: '0',
  });
});
