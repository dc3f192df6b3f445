import { JOB_STATUS } from './life.ts';

/** Attributes for our own use, but for the mark of pilots, and long ones that the program receives in other ways. */
const NOT_FOR_JOBS = /^(Gryphus(?!Glidein$)|Env$|Environment$)/;

/** The job's ad as its program finds it in the file `_CONDOR_JOB_AD`: one line per attribute, as while the job runs. */
export function jobAdLines(ad: Iterable<readonly [string, string | null]>): string[] {
  const lines: string[] = [];
  for (const [name, text] of ad) {
    const line = jobAdLine(name, text);
    if (line !== undefined) lines.push(line);
  }
  lines.push(RUNNING);
  return lines;
}

const RUNNING = `JobStatus = ${JOB_STATUS.running}`;

/** The line of one attribute other than JobStatus; `undefined` if the program does not see it. */
export function jobAdLine(name: string, text: string | null): string | undefined {
  if (text === null || name === 'JobStatus' || NOT_FOR_JOBS.test(name)) return undefined;
  return `${name} = ${lineText(text)}`;
}

/** A line end within a string would end the line in the file, and a NUL would end the text. */
export function lineText(text: string): string {
  // Nearly no text has any; a search costs a fraction of three replacements.
  if (!/[\n\r\0]/.test(text)) return text;
  return text.replaceAll('\n', '\\n').replaceAll('\r', '\\r').replaceAll('\0', '');
}

/** A line of such a file, as name and text; `undefined` if it is none. */
export function readAdLine(line: string): readonly [name: string, text: string] | undefined {
  const [, name, text] = /^([A-Za-z_][A-Za-z0-9_.]*) = (.*)$/s.exec(line) ?? [];
  return name === undefined || text === undefined ? undefined : [name, text];
}
