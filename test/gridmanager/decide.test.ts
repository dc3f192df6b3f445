import { describe, expect, it } from 'vitest';
import { decide } from '../../src/gridmanager/decide.ts';
import { endingAttributes } from '../../src/gridmanager/endings.ts';
import { Attrs, type AttrTexts } from '../../src/job/attrs.ts';
import type { JobRecord } from '../../src/queue/api.ts';
import type { Ending } from '../../src/site/contract.ts';

const BEFORE = { startedAt: 100, wallClock: 0, userCpu: 0, systemCpu: 0, completions: 0 };
const ended = (how: Ending['how']) => endingAttributes({ how }, BEFORE, 160);

function job(attrs: AttrTexts): JobRecord {
  return {
    id: { cluster: 1, proc: 0 },
    state: 'fetched',
    manager: 'u',
    site: 's',
    attempt: 1,
    priority: 0,
    since: 0,
    attrs: new Attrs({ NumJobStarts: '1', NumJobCompletions: '0', ...attrs }),
  };
}

describe('what becomes of a job that ended', () => {
  it('completes, whatever the exit status, without a policy', () => {
    expect(decide(job(ended({ kind: 'exited', code: 3 })), 200).event).toBe('complete');
    expect(decide(job(ended({ kind: 'signaled', signal: 9 })), 200).event).toBe('complete');
  });

  it('runs again what was evicted in the pool, and nowhere else', () => {
    const evicted = ended({ kind: 'by-site', cause: 'preempted', message: 'vacated' });
    expect(decide({ ...job(evicted), site: 'pool' }, 200)).toMatchObject({
      event: 'again',
      info: { by: 'eviction', reason: 'vacated' },
    });
    expect(decide(job(evicted), 200).event).toBe('stop');
    const tooLarge = ended({ kind: 'by-site', cause: 'out-of-memory', message: '' });
    expect(decide({ ...job(tooLarge), site: 'pool' }, 200).event).toBe('stop');
  });

  it('follows max_retries as condor_submit writes it', () => {
    const retries = { JobMaxRetries: '2', OnExitRemove: 'NumJobCompletions > JobMaxRetries || ExitCode =?= 0' };
    const fails = ended({ kind: 'exited', code: 1 });
    expect(decide(job({ ...retries, ...fails }), 200)).toMatchObject({
      event: 'again',
      set: { NumJobCompletions: '1' },
    });
    expect(decide(job({ ...retries, ...fails, NumJobCompletions: '2' }), 200).event).toBe('complete');
    expect(decide(job({ ...retries, ...ended({ kind: 'exited', code: 0 }) }), 200).event).toBe('complete');
  });

  it('continues after a checkpoint, whatever its exit policy says', () => {
    const attrs = { JobUniverse: '5', SuccessCheckpointExitCode: '85', OnExitHold: 'true', NumCkpts: '1' };
    expect(decide(job({ ...attrs, ...ended({ kind: 'exited', code: 85 }) }), 200)).toEqual({
      event: 'again',
      set: { NumCkpts: '2', LastCkptTime: '200' },
      info: { by: 'checkpoint' },
    });
    expect(decide(job({ ...attrs, ...ended({ kind: 'exited', code: 0 }) }), 200).event).toBe('stop');
    const evicted = ended({ kind: 'by-site', cause: 'preempted', message: '' });
    expect(decide({ ...job({ ...attrs, ...evicted }), site: 'pool' }, 200).info).toMatchObject({ by: 'eviction' });
  });

  it('holds by on_exit_hold, with its reason and subcode', () => {
    const held = decide(
      job({
        ...ended({ kind: 'exited', code: 7 }),
        OnExitHold: 'ExitCode == 7',
        OnExitHoldReason: '"seven"',
        OnExitHoldSubCode: '70',
      }),
      200,
    );
    expect(held).toMatchObject({
      event: 'stop',
      set: { HoldReason: '"seven"', HoldReasonCode: '3', HoldReasonSubCode: '70' },
    });
  });

  it('holds where on_exit_remove cannot be said', () => {
    expect(decide(job({ ...ended({ kind: 'exited', code: 0 }), OnExitRemove: 'Nowhere > 1' }), 200)).toMatchObject({
      event: 'stop',
      set: { HoldReasonCode: '5' },
    });
  });

  it('holds for an output that is missing', () => {
    expect(decide(job({ ...ended({ kind: 'exited', code: 0 }), GryphusMissingOutput: '"x"' }), 200).event).toBe('stop');
  });

  it('holds what the site can never start with what to do about it, whatever max_retries says', () => {
    const attrs = ended({ kind: 'by-site', cause: 'unsatisfiable', message: 'PartitionTimeLimit' });
    for (const retries of [{}, { JobMaxRetries: '3', NumJobStarts: '0' }]) {
      const { event, set } = decide(job({ ...attrs, ...retries }), 200);
      expect(event).toBe('stop');
      expect(set?.['HoldReason']).toBe(
        '"The site can never start it as requested (PartitionTimeLimit). Request less time: batch_runtime in the submit file."',
      );
    }
  });

  it.each(['timeout', 'node-fail', 'preempted', 'requeued', 'out-of-memory', 'cancelled', 'vanished'] as const)(
    'never takes %s for an end, and starts again only within max_retries',
    (cause) => {
      const attrs = ended({ kind: 'by-site', cause, message: 'W' });
      expect(decide(job(attrs), 200)).toMatchObject({ event: 'stop' });
      expect(decide(job({ ...attrs, JobMaxRetries: '1' }), 200).event).toBe('again');
      expect(decide(job({ ...attrs, JobMaxRetries: '1', NumJobStarts: '2' }), 200).event).toBe('stop');
    },
  );
});

describe('the attributes of an ending', () => {
  it('tell exit and signal apart, and add up the times', () => {
    const attrs = endingAttributes(
      {
        how: { kind: 'signaled', signal: 11 },
        startedAt: 10,
        endedAt: 40,
        usage: { userCpuSeconds: 2.5, maxRssKb: 3000 },
      },
      { ...BEFORE, wallClock: 5, userCpu: 1 },
      160,
    );
    expect(attrs).toMatchObject({
      ExitBySignal: 'true',
      ExitSignal: '11',
      ExitCode: null,
      RemoteWallClockTime: '35.0',
      CumulativeRemoteUserCpu: '3.5',
      MemoryUsage: '3',
    });
  });

  it('never count a negative time when a clock jumped', () => {
    expect(
      endingAttributes({ how: { kind: 'exited', code: 0 }, startedAt: 50, endedAt: 10 }, BEFORE, 160),
    ).toMatchObject({
      RemoteWallClockTime: '0.0',
    });
  });
});
