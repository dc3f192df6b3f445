import { readString } from '../../job/values.ts';
import type { Core } from '../engine/core.ts';
import { MARK, marked } from '../engine/core.ts';
import { type DagGraph, descriptionOf, directoryOf, isSubdag, KIND, nameOf, parentsOf } from '../language/graph.ts';
import type { NodeVar } from '../language/commands.ts';
import type { DagSettings } from '../language/settings.ts';
import type { DagRun } from './prepare.ts';
import type { NodeSubmit } from './world.ts';

export interface SubmitOptions {
  readonly dagmanId: number;
  readonly batchName: string;
  readonly batchId: string;
  /** The path of the node jobs' log, absolute. */
  readonly nodesLog: string;
  /**
   * Attributes of the DAG manager's own job, as expression texts, that its nodes' jobs inherit (DAGMAN_INHERIT_ATTRS).
   */
  readonly inherited: readonly Macro[];
}

/** The user log events that the node jobs' log needs (DAGMan's own list). */
const NODES_MASK = '0,1,2,4,5,7,8,9,10,11,12,13,16,17,24,27,35,36';
/** Parents' names are left out of a submit beyond this many characters. */
const MOST_PARENTS = 2000;

export type Macro = readonly [name: string, value: string];

/** What to submit for a node now: DAGMan's macros, the node's VARS, and the attributes of its jobs. */
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
    // A batch name of one blank means none, except for the managers of sub-DAGs.
    ...(options.batchName === ' ' && !isSubdag(dag, node) ? [] : [['batch_name', options.batchName] as const]),
    ['batch_id', options.batchId],
  ];
  const priority = dag.priority[node] ?? 0;
  if (priority !== 0) before.push(['priority', String(priority)]);
  if (marked(core, node, MARK.hold)) before.push(['hold', 'true']);
  before.push(...recorded(core, retry), ...options.inherited);
  before.push(...macros(vars, true));
  const after: Macro[] = [
    ['dag_node_name', name],
    ['submit_event_notes', `DAG Node: ${name}`],
    ['dagman_log', options.nodesLog],
    ['My.DAGManNodesMask', `"${NODES_MASK}"`],
    ['DAGManJobId', String(options.dagmanId)],
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
    priority,
    oneJob: core.settings.DAGMAN_PROHIBIT_MULTI_JOBS || dag.kind[node] === KIND.provisioner,
  };
}

/** What DAGMAN_NODE_RECORD_INFO and DAGMAN_RECORD_MACHINE_ATTRS add to the jobs' ads. */
function recorded(core: Core, retry: number): readonly Macro[] {
  const { DAGMAN_NODE_RECORD_INFO: info, DAGMAN_RECORD_MACHINE_ATTRS: machine } = core.settings;
  const wanted: Macro[] = [];
  if (retry > 0 && listed(info).some((word) => word.toLowerCase() === 'retry')) {
    wanted.push(['My.DAGManNodeRetry', String(retry)]);
  }
  if (machine !== '') {
    const inLog = [...listed(machine).map((name) => `MachineAttr${name}0`), 'DAGNodeName'];
    wanted.push(['job_ad_information_attrs', inLog.join(',')], ['job_machine_attrs', machine]);
  }
  return wanted;
}

/**
 * What nodes' jobs inherit from the manager's own: the accounting group and the attributes of DAGMAN_INHERIT_ATTRS,
 * with DAGMAN_INHERIT_ATTRS_PREFIX added to their names unless a sub-DAG's manager already has it.
 */
export function inheritedOf(run: DagRun, settings: DagSettings): readonly Macro[] {
  const prefix = settings.DAGMAN_INHERIT_ATTRS_PREFIX;
  const own = { get: (name: string) => run.ownAttribute?.(name) };
  const groups = (['AcctGroup', 'AcctGroupUser'] as const).flatMap((name) => {
    const value = readString(own, name) ?? '';
    return value === '' ? [] : [[name === 'AcctGroup' ? 'accounting_group' : 'accounting_group_user', value] as const];
  });
  return [...groups, ...attributesOf(run, settings, prefix)];
}

function attributesOf(run: DagRun, settings: DagSettings, prefix: string): readonly Macro[] {
  return listed(settings.DAGMAN_INHERIT_ATTRS).flatMap((name) => {
    const text = run.ownAttribute?.(run.parentDagmanId === undefined ? name : prefix + name);
    return text === undefined ? [] : [[`My.${prefix}${name}`, text] as const];
  });
}

/** The words of a list setting. */
function listed(setting: string): readonly string[] {
  return setting.split(/[\s,]+/).filter((word) => word !== '');
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
