import { describe, expect, it } from 'vitest';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';
import type { State } from '../../src/job/life.ts';
import type { Change, JobRecord } from '../../src/queue/api.ts';
import { Deadlines } from '../../src/scheduler/deadlines.ts';
import { deadlineOf, hasPeriodicPolicy, isPolicy, overTime, vacates } from '../../src/scheduler/periodic.ts';
import { until } from '../agent/agent.ts';

function job(attrs: AttrTexts, state: State = 'running', site = 's'): JobRecord {
  return {
    id: { cluster: 3, proc: 1 },
    state,
    manager: 'u',
    site,
    attempt: 1,
    priority: 0,
    since: 0,
    attrs: new Attrs({ JobCurrentStartDate: '1000', ...attrs }),
  };
}

describe('how long a job may run', () => {
  it.each<[attrs: AttrTexts, held: string | undefined, code?: string]>([
    [{ AllowedJobDuration: '99' }, 'The job exceeded allowed job duration of 01:39', '46'],
    [{ AllowedExecuteDuration: '99' }, 'The job exceeded allowed execute duration of 01:39', '47'],
    [{ AllowedJobDuration: '50', AllowedExecuteDuration: '5' }, 'The job exceeded allowed job duration of 00:50', '46'],
    [{ AllowedExecuteDuration: '100' }, undefined],
    [
      { AllowedExecuteDuration: 'NumJobStarts * 10', NumJobStarts: '2' },
      'The job exceeded allowed execute duration of 00:20',
      '47',
    ],
    [{ AllowedExecuteDuration: 'undefined' }, undefined],
    [{}, undefined],
  ])('%j after 100 s: %j', (attrs, reason, code) => {
    const change = overTime(job(attrs), 1100);
    expect(change?.set?.['HoldReason']).toBe(reason === undefined ? undefined : JSON.stringify(reason));
    if (reason === undefined) return;
    expect(change).toMatchObject({ event: 'hold', from: 'running', info: { by: 'policy' } });
    expect(change?.set).toMatchObject({ HoldReasonCode: code, NumHolds: '1' });
    // It still runs in the last second that it may.
    expect(overTime(job(attrs), (deadlineOf(job(attrs)) ?? 0) - 1)).toBeUndefined();
  });

  it.each([
    [0, '00:00'],
    [300, '05:00'],
    [4500, '1:15:00'],
    [72_000, '20:00:00'],
    [259_200, '3+00:00:00'],
  ])('%i seconds are said as HTCondor says them', (seconds, text) => {
    const change = overTime(job({ AllowedExecuteDuration: String(seconds) }), 1e9);
    expect(change?.set?.['HoldReason']).toBe(`"The job exceeded allowed execute duration of ${text}"`);
  });

  it('counts while it runs, and at no other time', () => {
    const states: State[] = ['idle', 'committed', 'unknown', 'finished', 'held', 'removing', 'completed'];
    for (const state of states) expect(deadlineOf(job({ AllowedJobDuration: '1' }, state))).toBeUndefined();
    for (const state of ['running', 'suspended', 'unknown-running'] as const)
      expect(deadlineOf(job({ AllowedJobDuration: '1' }, state))).toBe(1002);
  });

  it('is a policy that is looked at, also where an edit gives it', () => {
    expect(hasPeriodicPolicy(new Map([['AllowedExecuteDuration', '5']]))).toBe(true);
    expect(hasPeriodicPolicy(new Map([['PeriodicVacate', 'true']]))).toBe(true);
    expect(hasPeriodicPolicy(new Map([['PeriodicVacate', 'false']]))).toBe(false);
    expect(['allowedjobduration', 'PeriodicHold', 'JobPrio'].map(isPolicy)).toEqual([true, true, false]);
  });
});

describe('periodic_vacate', () => {
  it('is for what runs in the pool', () => {
    const wants = { PeriodicVacate: 'NumJobStarts == 1', NumJobStarts: '1' };
    expect(vacates(job(wants, 'running', 'pool'))).toBe(true);
    expect(vacates(job({ ...wants, NumJobStarts: '2' }, 'running', 'pool'))).toBe(false);
    expect(vacates(job(wants, 'running', 'slurm'))).toBe(false);
    expect(vacates(job(wants, 'idle', 'pool'))).toBe(false);
  });
});

describe('deadlines', () => {
  it('come at the second, for what started and for what was seen to run', async () => {
    const now = Math.floor(Date.now() / 1000);
    const jobs = new Map([
      ['3.1', { ...job({ AllowedJobDuration: '0', JobCurrentStartDate: String(now) }) }],
      [
        '4.0',
        { ...job({ AllowedJobDuration: '9000', JobCurrentStartDate: String(now) }), id: { cluster: 4, proc: 0 } },
      ],
    ]);
    const changed: Change[] = [];
    const queue = {
      get: async (ids: readonly { cluster: number; proc: number }[]) =>
        ids.flatMap(({ cluster, proc }) => jobs.get(`${cluster}.${proc}`) ?? []),
      transitionMany: async (changes: readonly Change[]) => {
        changed.push(...changes);
        return [];
      },
    };
    let due = 0;
    const deadlines = new Deadlines(
      queue,
      async (cluster) => cluster === 3,
      () => due++,
    );
    const started = (job: string) =>
      ({
        id: '1-0',
        event: { type: 'transition', event: 'started', from: 'committed', to: 'running', job, set: {} },
      }) as never;
    await deadlines.hear([started('4.0'), started('3.1')]);
    await until('the second', () => due > 0 || undefined, 5000);
    await deadlines.round();
    expect(changed.map(({ id }) => id)).toEqual([{ cluster: 3, proc: 1 }]);
    // A job that restarted in the meantime is not held for its former run.
    jobs.set('3.1', job({ AllowedJobDuration: '0', JobCurrentStartDate: String(now + 100) }));
    deadlines.note(job({ AllowedJobDuration: '0', JobCurrentStartDate: String(now - 100) }));
    await deadlines.round();
    expect(changed).toHaveLength(1);
    await deadlines.round(now + 200);
    expect(changed).toHaveLength(2);
    deadlines.close();
  });
});
