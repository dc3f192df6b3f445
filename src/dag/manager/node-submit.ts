import type { Core } from '../engine/core.ts';
import { MARK, marked } from '../engine/core.ts';
import { type DagGraph, descriptionOf, directoryOf, KIND, nameOf, parentsOf } from '../graph.ts';
import type { NodeVar } from '../language/commands.ts';
import type { NodeSubmit } from './world.ts';

export interface SubmitOptions {
  readonly dagmanId: number;
  readonly batchName: string;
  /** The node jobs' log, absolute. */
  readonly nodesLog: string;
}

/** User log events that the node jobs' log needs (DAGMan's own list). */
const NODES_MASK = '0,1,2,4,5,7,8,9,10,11,12,13,16,17,24,27,35,36';
/** Characters of parents' names that a submit carries; more are left out. */
const MOST_PARENTS = 2000;

type Macro = readonly [name: string, value: string];

/** What is to be submitted for a node now: DAGMan's macros, the node's VARS, and what the jobs must carry. */
export function nodeSubmit(core: Core, node: number, options: SubmitOptions): NodeSubmit {
  const { dag } = core;
  const name = nameOf(dag, node);
  const retry = core.retries[node] ?? 0;
  const parents = parentNames(dag, node);
  const vars = dag.vars.get(node) ?? [];
  const before: Macro[] = [
    ['JOB', name],
    ['RETRY', String(retry)],
    ['DAG_STATUS', String(core.dagStatus)],
    ['FAILED_COUNT', String(core.counts.failed)],
    ...(parents === '' ? [] : [['DAG_PARENT_NAMES', parents] as const]),
    ['batch_name', options.batchName],
    ['batch_id', `${options.dagmanId}.0`],
  ];
  const priority = dag.priority[node] ?? 0;
  if (priority !== 0) before.push(['priority', String(priority)]);
  if (marked(core, node, MARK.hold)) before.push(['hold', 'true']);
  before.push(...macros(vars, true));
  const after: Macro[] = [
    ['dag_node_name', name],
    ['submit_event_notes', `DAG Node: ${name}`],
    ['dagman_log', options.nodesLog],
    ['My.DAGManNodesMask', `"${NODES_MASK}"`],
  ];
  if (core.settings.DAGMAN_SUPPRESS_JOB_LOGS) after.push(['log', '']);
  if (core.settings.DAGMAN_SUPPRESS_NOTIFICATION) after.push(['notification', 'NEVER']);
  if (dag.kind[node] === KIND.service) after.push(['My.DAGLifetimeJob', 'true']);
  after.push(...macros(vars, false));
  return {
    node: name,
    retry,
    description: descriptionOf(dag, node),
    directory: directoryOf(dag, node),
    before,
    after,
    attributes: {
      DAGNodeName: name,
      DAGManJobId: options.dagmanId,
      DAGParentNodeNames: parents,
      DAGNodeRetry: retry,
    },
    oneJob: core.settings.DAGMAN_PROHIBIT_MULTI_JOBS || dag.kind[node] === KIND.provisioner,
  };
}

function macros(vars: readonly NodeVar[], prepend: boolean): readonly Macro[] {
  return vars.filter((v) => v.prepend === prepend).map((v) => [v.name, v.value]);
}

function parentNames(dag: DagGraph, node: number): string {
  let names = '';
  for (const parent of parentsOf(dag, node)) {
    if (names.length >= MOST_PARENTS) break;
    names += (names === '' ? '' : ',') + nameOf(dag, parent);
  }
  return names;
}
