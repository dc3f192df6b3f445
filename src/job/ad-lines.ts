import { JOB_STATUS } from './life.ts';

/** Attributes for our own use, and long ones that the program receives in other ways. */
const NOT_FOR_JOBS = /^(Gryphus|Env$|Environment$)/;

/** The job's ad as its program finds it in the file `_CONDOR_JOB_AD`: one line per attribute, as while the job runs. */
export function jobAdLines(ad: Iterable<readonly [string, string | null]>): string[] {
  const lines: string[] = [];
  for (const [name, text] of ad) {
    if (text !== null && name !== 'JobStatus' && !NOT_FOR_JOBS.test(name)) lines.push(`${name} = ${lineText(text)}`);
  }
  lines.push(`JobStatus = ${JOB_STATUS.running}`);
  return lines;
}

/** A line end within a string would end the line in the file, and a NUL would end the text. */
export function lineText(text: string): string {
  return text.replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\0', '');
}
