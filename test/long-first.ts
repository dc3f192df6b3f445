import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, longest first, by what their paths hold: begun last, one of them alone would be waited for. */
const LONG = [
  'bare/',
  'chaos/',
  'crash/',
  'conformance/',
  'agent/',
  'dag/',
  'pool/',
  'glidein/',
  'gram/',
  'credentials/',
  'jobmanager/',
  'transport/',
];

/** Begins the long files first, so that the workers end together. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = (file: TestSpecification): number => {
      const at = LONG.findIndex((part) => file.moduleId.includes(`/test/${part}`));
      return at < 0 ? LONG.length : at;
    };
    return [...files].sort((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}
