import { GryphusError } from '../../src/errors.ts';
import { type Cluster, fullAds, parseSubmit, type ParseRequest } from '../../src/submit/api.ts';
import { memoryWorld } from './memory-world.ts';

/** A world with a program `job.sh` in /d, and the test's additions. */
export function world(files: Record<string, string> = {}, environment: Record<string, string> = {}) {
  const script = '#!/bin/sh\nexit 0\n';
  const run = (argv: readonly string[]) => {
    return argv[0] === 'say' ? { stdout: `${argv.slice(1).join('\n')}\n`, status: 0 } : undefined;
  };
  const all = Object.fromEntries(
    Object.entries({ 'job.sh': script, ...files }).map(([name, text]) => [`/d/${name}`, text]),
  );
  return memoryWorld({ files: all, environment, run, stdin: 'from stdin\n' });
}

export function submit(text: string, more: Partial<ParseRequest> = {}): Cluster {
  return parseSubmit({ text, file: 'job.sub', cwd: '/d', world: world(), owner: 'me', now: 1_800_000_000, ...more });
}

/** The description after `executable = job.sh`. */
export function jobs(lines: string, more?: Partial<ParseRequest>): Record<string, string>[] {
  return [...fullAds(submit(`executable = job.sh\n${lines}\n`, more))];
}

/** One attribute of each job. */
export function column(attribute: string, lines: string, more?: Partial<ParseRequest>): (string | undefined)[] {
  return jobs(lines, more).map((ad) => ad[attribute]);
}

/** What `$(x)` (or any text) expands to in a job. */
export function expansion(text: string, lines = '', more?: Partial<ParseRequest>): string | undefined {
  return column('JobDescription', `${lines}\ndescription = [${text}]\nqueue`, more)[0]?.slice(2, -2);
}

/** The error with which a description is refused; fails the test if it is accepted. */
export function refusal(lines: string, more?: Partial<ParseRequest>): GryphusError {
  try {
    jobs(lines, more);
  } catch (thrown) {
    if (thrown instanceof GryphusError) return thrown;
    throw thrown;
  }
  throw new Error(`taken: ${lines}`);
}
