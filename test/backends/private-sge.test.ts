import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sge, skipWithoutSge, startSge } from '../sites/sge.ts';

describe.skipIf(skipWithoutSge())('the private Grid Engine', () => {
  let sge: Sge;
  beforeAll(async () => {
    sge = await startSge();
  });
  afterAll(async () => await sge?.stop());

  it('runs a job to its end', () => {
    const answer = sge.run('qsub', '-terse', '-sync', 'y', '-b', 'y', '-o', '/dev/null', '-e', '/dev/null', 'true');
    expect(answer).toMatch(/^\d+$/m);
  });
});
