import { JOB_STATUS } from './life.ts';

/** What only we use, and what is long and told to the program by other ways. */
const NOT_FOR_JOBS = /^(Gryphus|Env$|Environment$)/;

/** The job's ad as its program finds it in the file `_CONDOR_JOB_AD`: a line for each attribute, as it is while the job runs. */
export function jobAdLines(ad: Iterable<readonly [string, string | null]>): string[] {
  const lines: string[] = [];
  for (const [name, text] of ad) {
    if (text !== null && name !== 'JobStatus' && !NOT_FOR_JOBS.test(name)) lines.push(`${name} = ${oneLine(text)}`);
  }
  lines.push(`JobStatus = ${JOB_STATUS.running}`);
  return lines;
}

/** A line end in a string would end its line in the file, and a NUL the text. */
export function oneLine(text: string): string {
  return text.replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\0', '');
}
