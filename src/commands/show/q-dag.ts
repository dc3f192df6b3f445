import type { JobView } from '../../index.ts';
import { numberOf, stringOf } from './ad.ts';
import { VIEWS, viewAttributes } from './q-rows.ts';
import { shortened } from './table.ts';
import { cut, padEnd, visible, type Width } from './width.ts';

export const DAG_ATTRIBUTES = [...viewAttributes(VIEWS.nobatch), 'DAGManJobId', 'DAGNodeName'];
export const DAG_HEAD = ' ID      OWNER/NODENAME      SUBMITTED     RUN_TIME ST PRI SIZE CMD';

/** Widths of the id, and of the owner or the node's name. */
const ID = 9;
const NAME = 17;

/**
 * One job per line, like `condor_q -dag -nobatch`: each DAG manager is followed by its nodes, recursively. `now`: Unix
 * seconds.
 */
export function dagLines(jobs: readonly JobView[], now: number, width: Width): string[] {
  const managers = new Set(jobs.map(({ id }) => id.cluster));
  const above = ({ id, ad }: JobView) => {
    const dag = numberOf(ad, 'DAGManJobId');
    return dag !== undefined && dag !== id.cluster && managers.has(dag) ? dag : undefined;
  };
  const below = new Map<number | undefined, JobView[]>();
  for (const job of jobs) {
    const of = above(job);
    const nodes = below.get(of);
    if (nodes) nodes.push(job);
    else below.set(of, [job]);
  }
  const lines: string[] = [];
  const add = (job: JobView, depth: number): void => {
    const name = depth === 0 ? stringOf(job.ad, 'Owner') : stringOf(job.ad, 'DAGNodeName');
    const label = shortened(`${depth === 0 ? '' : `${' '.repeat(depth)}|-`}${visible(name ?? '?')}`, NAME);
    const line = VIEWS.nobatch.row(job, now, false);
    lines.push(cut(`${line.slice(0, ID)}${padEnd(label, NAME)} ${line.slice(ID)}`, width));
    if (job.id.proc === 0) for (const node of below.get(job.id.cluster) ?? []) add(node, depth + 1);
  };
  for (const job of below.get(undefined) ?? []) add(job, 0);
  return lines;
}
