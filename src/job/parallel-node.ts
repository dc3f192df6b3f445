import { UNIVERSE } from './universe.ts';
import { readNumber, type TextSource } from './values.ts';

/** What HTCondor's submit writes for `$(Node)`, whose value only each node of a parallel job knows. */
const NODE = /#pArAlLeLnOdE#|#MpInOdE#/g;

/** Whether the text is different for each node of a parallel job. */
export function namesNode(text: string): boolean {
  return text.includes('#pArAlLeLnOdE#') || text.includes('#MpInOdE#');
}

/** The text with `$(Node)` as the number of a node of a parallel job. */
export function withNode(text: string, node: number): string {
  return text.replace(NODE, String(node));
}

/** Whether a job is of the parallel universe, or of `mpi`, its older name. */
export function isParallel(job: TextSource): boolean {
  const universe = readNumber(job, 'JobUniverse');
  return universe === UNIVERSE.parallel || universe === UNIVERSE.mpi;
}

/** How many jobs of its cluster start and end together with a parallel job, itself included. */
export function togetherWith(job: TextSource): number {
  return isParallel(job) ? (readNumber(job, 'TotalSubmitProcs') ?? 1) : 1;
}
