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

/** Whether this JobUniverse is the parallel universe, or `mpi`, its older name. */
export function isParallelUniverse(universe: number | undefined): boolean {
  return universe === UNIVERSE.parallel || universe === UNIVERSE.mpi;
}

/** Whether a job is of the parallel universe. */
export function isParallel(job: TextSource): boolean {
  return isParallelUniverse(readNumber(job, 'JobUniverse'));
}

/** How many jobs of its cluster start and end together with a parallel job, itself included. */
export function togetherWith(job: TextSource): number {
  return isParallel(job) ? (readNumber(job, 'TotalSubmitProcs') ?? 1) : 1;
}

/** In the ad of a job of the parallel universe: the number of its first node, if that is not 0. */
export const FIRST_NODE = 'GryphusFirstNode';

/** The numbers of a parallel job's own nodes: those of the jobs of a cluster are numbered through. */
export function nodeNumbers(job: TextSource): readonly number[] {
  const first = readNumber(job, FIRST_NODE) ?? 0;
  return Array.from({ length: readNumber(job, 'MaxHosts') ?? 1 }, (_, i) => first + i);
}
