import { describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { Checks, restOf, WorkerSilence } from '../../src/pool/central-manager/worker-silence.ts';

const REMOTE = { local: false };
const KEY: AttemptKey = 'a.1.0.1';
const NOTHING = { claims: new Map<string, { readonly key: AttemptKey | undefined }>() };
const JOB = { claims: new Map([['c', { key: KEY }]]) };
/** A claim that is kept for what comes next. */
const KEPT = { claims: new Map([['c', { key: undefined }]]) };

describe('the rest between the pings of workers that run nothing', () => {
  it('is none in a small pool, and none of the worker of this machine', () => {
    expect([restOf(REMOTE, 1), restOf(REMOTE, 500), restOf({ local: true }, 10_000)]).toEqual(Array(3).fill(undefined));
  });

  it('leaves as many pings a second as 500 workers send, but is five minutes at most', () => {
    expect([restOf(REMOTE, 2000), restOf(REMOTE, 50_000)]).toEqual([40, 300]);
  });
});

describe('the silence of a worker', () => {
  /** After how many checks it gets no more attempts, and after how many it is dead. */
  function checks(silence: WorkerSilence, worker: Parameters<WorkerSilence['check']>[1], from = 0): number[] {
    let isSilent = 0;
    for (let check = from + 1; check < 1000; check++) {
      const found = silence.check(0, worker, check, 5000 * check);
      if (found.isSilent) isSilent ||= check - from;
      if (found.isDead) return [isSilent, check - from];
    }
    return [];
  }

  it('is 20 s until it gets no more jobs, and a minute until it is dead', () => {
    for (const worker of [NOTHING, JOB]) expect(checks(new WorkerSilence(0), worker)).toEqual([4, 12]);
  });

  it('is as much longer as it was told to rest while nothing runs there, and only then', () => {
    const silence = (rest: number) => Object.assign(new WorkerSilence(0), { rest });
    expect(checks(silence(120), NOTHING)).toEqual([4 + 22, 12 + 22]);
    expect(checks(silence(120), KEPT)).toEqual([4 + 22, 12 + 22]);
    expect(checks(silence(120), JOB)).toEqual([5, 13]);
  });

  it('is counted from the start of a job, since from then on it pings like others', () => {
    const silence = Object.assign(new WorkerSilence(0), { rest: 120 });
    for (let check = 1; check <= 20; check++) silence.check(0, NOTHING, check, 5000 * check);
    expect(checks(silence, JOB, 20)).toEqual([5, 13]);
  });

  it('is found as soon if it is checked only when something may be found', () => {
    for (const [worker, rest] of [
      [NOTHING, undefined],
      [NOTHING, 120],
      [JOB, 120],
    ] as const) {
      const all = checks(Object.assign(new WorkerSilence(0), { rest }), worker);
      const silence = Object.assign(new WorkerSilence(0), { rest });
      const found: number[] = [];
      let looks = 0;
      let asked = 0;
      for (let check = 1; found.length < 2; looks++) {
        const { isAsked, isSilent, isDead, again } = silence.check(0, worker, check, 5000 * check);
        if (isAsked) asked ||= check;
        if (isSilent && found.length === 0) found.push(check);
        if (isDead) found.push(check);
        check += again;
      }
      expect(found).toEqual(all);
      expect(asked).toBe((all[0] ?? 0) - 1);
      expect(looks).toBeLessThan(13);
    }
  });

  it('is counted from the last byte, not from the check that found it', () => {
    const silence = Object.assign(new WorkerSilence(0), { rest: 120 });
    // Heard 15 checks ago.
    silence.check(5_000, NOTHING, 16, 80_000);
    expect(silence.check(5_000, NOTHING, 1 + 4 + 22, 135_000)).toMatchObject({ isSilent: true, isDead: false });
  });

  it('does not grow while nobody checks, as in a process that was stopped', () => {
    const silence = Object.assign(new WorkerSilence(0), { rest: 120 });
    silence.check(1, NOTHING, 1, 5_000);
    expect(silence.check(2, NOTHING, 2, 3_600_000)).toMatchObject({ isSilent: false });
  });

  it('ends with a byte', () => {
    const silence = new WorkerSilence(0);
    for (let check = 1; check < 12; check++) silence.check(0, JOB, check, 5000 * check);
    expect(silence.check(60_000, JOB, 12, 60_000)).toMatchObject({ isSilent: false, isDead: false, isAsked: false });
  });
});

describe('checks', () => {
  it('are made when they are due, once, and sooner if there is a reason', () => {
    const checks = new Checks<string>();
    checks.plan('a', 3);
    checks.plan('b', 1);
    checks.plan('c', 2);
    checks.drop('c');
    expect(checks.next()).toEqual(['b']);
    checks.plan('a', 1);
    expect([checks.next(), checks.next(), checks.next()]).toEqual([['a'], [], []]);
  });
});
