import { describe, expect, it } from 'vitest';
import { classify, NOTHING_SEEN, type GramSeen } from '../../src/gram/classify.ts';
import { STATE } from '../../src/gram/protocol.ts';
import { freshKey } from '../conformance/kit.ts';

const key = freshKey();
const told = (seen: Partial<GramSeen>, record: Partial<Parameters<typeof classify>[0]> = {}) =>
  classify({ key, phase: 'committed', losses: 0, ...record }, { ...NOTHING_SEEN, ...seen });

describe('what GRAM says of a job', () => {
  it.each([
    [0, 'queued'],
    [STATE.pending, 'queued'],
    [STATE.unsubmitted, 'queued'],
    [STATE.stageIn, 'queued'],
    [STATE.active, 'running'],
    [STATE.stageOut, 'running'],
    [STATE.suspended, 'suspended'],
    [3, 'unclear'],
    [4096, 'unclear'],
  ])('%i is %s', (state, is) => {
    expect(told({ state })).toMatchObject({ report: { is } });
    expect(told({ state }, { phase: 'asked' }).report).toEqual({ key, is: 'prepared' });
  });

  it('is not lost before GRAM has let go of what it could not begin with', () => {
    const failed = { state: STATE.failed, failure: 43, adapter: 'no route' };
    const why = expect.stringMatching(/stage the executable.*: no route$/);
    expect(told(failed)).toEqual({ report: { key, is: 'queued', why }, action: 'give-up' });
    expect(told(failed, { phase: 'lost' }).report).toMatchObject({ is: 'lost' });
    expect(told(failed, { losses: 3 })).toEqual({
      report: { key, is: 'ended', how: { kind: 'by-site', cause: 'cannot-start', message: why } },
    });
  });

  it('is no end before the results came, were asked for again, or had their time', () => {
    const stuck = { state: STATE.failed, failure: 73, active: true };
    expect(told(stuck)).toMatchObject({ report: { is: 'running' }, action: 'deliver' });
    expect(told({ ...stuck, retried: 59 })).toMatchObject({ action: 'deliver' });
    expect(told({ ...stuck, retried: 60 })).toMatchObject({ report: { is: 'running' }, action: 'wait' });
    const words = expect.stringContaining('could not be transferred to us: the job manager failed to open stdout');
    expect(told({ ...stuck, retried: 60, waited: true }).report).toMatchObject({
      is: 'ended',
      how: { message: words },
    });
    expect(told({ state: STATE.done })).toMatchObject({ report: { is: 'running' }, action: 'wait' });
    expect(told({ state: STATE.done, waited: true }).report).toMatchObject({
      is: 'ended',
      how: { kind: 'by-site', cause: 'vanished', message: 'it ended without an exit record' },
    });
  });

  it('is not begun where its script says so, and goes again', () => {
    const message = 'gryphus: the program did not arrive complete';
    expect(told({ state: STATE.done, message, active: true })).toEqual({
      report: { key, is: 'unclear', message },
      action: 'give-up',
    });
    expect(told({ state: STATE.done, message }, { losses: 3 }).report).toMatchObject({
      how: { kind: 'by-site', cause: 'cannot-start', message },
    });
  });

  it('is taken back when the job manager stopped, and is nothing when it knows nothing', () => {
    for (const failure of [130, 131])
      expect(told({ state: STATE.failed, failure })).toMatchObject({ report: { is: 'unclear' }, action: 'revive' });
    expect(told({ gone: true })).toEqual({ report: undefined });
  });
});
