import type { Submitted, Warning } from '../../index.ts';

/** More dots would tell nothing. */
const DOTS = 50;

/** The two lines of `condor_submit` on stdout: one dot per job, up to a line of them. */
export function submittedText({ cluster, total }: Pick<Submitted, 'cluster' | 'total'>): string {
  return `Submitting job(s)${'.'.repeat(Math.min(total, DOTS))}\n${total} job(s) submitted to cluster ${cluster}.\n`;
}

/** `condor_submit -terse`. */
export function terseText({ cluster, total }: Submitted): string {
  return `${cluster}.0 - ${cluster}.${Math.max(0, total - 1)}\n`;
}

export function warningText(file: string, { line, message }: Warning): string {
  const name = file === '-' ? '<stdin>' : file;
  return line === undefined ? `WARNING: ${message}` : `WARNING: ${name}, line ${line}: ${message}`;
}
