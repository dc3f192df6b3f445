import { describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { restOf, WorkerSilence } from '../../src/pool/central-manager/worker-silence.ts';

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

  it('leaves as many pings a second as 500 workers send, but is two minutes at most', () => {
    expect([restOf(REMOTE, 2000), restOf(REMOTE, 10_000)]).toEqual([40, 120]);
  });
});

describe('the silence of a worker', () => {
  /** After how many checks it gets no more attempts, and after how many it is dead. */
  function checks(silence: WorkerSilence, worker: Parameters<WorkerSilence['check']>[1]): number[] {
    let isSilent = 0;
    for (let check = 1; check < 1000; check++) {
      const found = silence.check(0, worker);
      if (found.isSilent) isSilent ||= check;
      if (found.isDead) return [isSilent, check];
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
    for (let check = 0; check < 20; check++) silence.check(0, NOTHING);
    expect(checks(silence, JOB)).toEqual([5, 13]);
  });

  it('is looked at more rarely while it rests, and again when a job is sent there', () => {
    const silence = Object.assign(new WorkerSilence(0), { rest: 120 });
    let left = 0;
    for (let check = 1; check <= 24; check++)
      if (silence.leavesOut()) left += 1;
      else silence.check(check, NOTHING);
    expect(left).toBe(20);
    silence.check(30, NOTHING);
    silence.starts();
    expect(silence.leavesOut()).toBe(false);
    silence.check(31, JOB);
    expect(silence.leavesOut()).toBe(false);
  });

  it('ends with a byte', () => {
    const silence = new WorkerSilence(0);
    for (let check = 0; check < 11; check++) silence.check(0, JOB);
    expect(silence.check(1, JOB)).toEqual({ isSilent: false, isDead: false, isAsked: false });
  });
});
