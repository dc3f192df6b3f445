import type { FailureGroup, Gryphus, Selections } from '../index.ts';
import { hasColours } from './show/colour.ts';
import { failureLines } from './show/failures.ts';

/** Says on standard error how the jobs failed, equal failures together; returns these. */
export async function sayFailures(gryphus: Gryphus, jobs: Selections): Promise<readonly FailureGroup[]> {
  const { FAILURE_ATTRIBUTES, groupFailures } = await import('../index.ts');
  const groups = await groupFailures(gryphus.jobs({ ...jobs, attributes: FAILURE_ATTRIBUTES }));
  for (const line of failureLines(groups, hasColours(process.stderr))) process.stderr.write(`${line}\n`);
  return groups;
}
