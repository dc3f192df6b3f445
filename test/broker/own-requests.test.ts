import { describe, expect, it } from 'vitest';
import { isOwnRequest, SampleTaker } from '../../src/broker/samples.ts';
import type { Transitioned } from '../../src/job/events.ts';

const ad = (attrs: Readonly<Record<string, string>>) => ({ get: (name: string) => attrs[name] });

describe('what speaks against a site, and what against a job', () => {
  it.each<[string, Record<string, string>, boolean]>([
    ['sbatch: error: invalid partition specified: nosuch', { BatchQueue: '"nosuch"' }, true],
    // The queue comes from the site's file: none of our jobs can run there.
    ['sbatch: error: invalid partition specified: nosuch', {}, false],
    ['Requested node configuration is not available', { RequestMemory: '900000' }, true],
    ['Requested node configuration is not available', { RequestCpus: '1' }, false],
    ['Requested node configuration is not available', { RequestCpus: '64' }, true],
    ['Requested time limit is invalid', { BatchRuntime: '9000000' }, true],
    ['Invalid account or account/partition combination specified', { BatchProject: '"x"' }, true],
    ['sbatch: error: Batch job submission failed: No space left on device', { BatchQueue: '"main"' }, false],
    ['it fell over', { BatchQueue: '"main"' }, false],
  ])('%s, of %j: %s', (message, attrs, own) => expect(isOwnRequest(ad(attrs), message)).toBe(own));

  const ended = (cause: string): Transitioned => ({
    v: 1,
    at: 7000,
    type: 'transition',
    job: '1.0',
    event: 'ended',
    from: 'running',
    to: 'finished',
    attempt: 1,
    set: { GryphusSiteCause: `"${cause}"` },
  });

  it.each([
    ['node-fail', 1],
    ['vanished', 1],
    ['preempted', 1],
    ['timeout', 0],
    ['out-of-memory', 0],
    ['deadline', 0],
  ])('an end by %s: %i failures of the site', (cause, failures) => {
    expect(new SampleTaker().take(ended(cause))).toHaveLength(failures);
  });
});
