import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { skipWithoutUml, underOwnKernel } from '../sites/uml.ts';

const ROOT = join(import.meta.dirname, '../..');

describe.skipIf(!SLOW || skipWithoutUml())('under a kernel with control groups of the second generation alone', () => {
  it('jobs are kept in them', async () => {
    const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs');
    const { status, text } = await underOwnKernel(
      [process.execPath, vitest, 'run', '--reporter=tap-flat', 'test/pool/cgroups.test.ts'],
      { cwd: ROOT, timeoutMs: 170_000 },
    );
    expect(text.slice(-6000)).toMatch(/^ok .* of the second generation > keep a job to its memory/m);
    expect(text).toMatch(/^ok .* if the worker was alone in its group/m);
    expect(status).toBe(0);
  }, 180_000);
});
