import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Parts of the paths of the slowest files, slowest first. Any of them, if started last, would delay the end of the run.
 */
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

/** Starts the slow files first, so that all workers end at about the same time. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = (file: TestSpecification): number => {
      const at = LONG.findIndex((part) => file.moduleId.includes(`/test/${part}`));
      return at < 0 ? LONG.length : at;
    };
    return [...files].sort((a, b) => rank(a) - rank(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }
}
