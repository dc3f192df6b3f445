import { isSubdag, parentsOf } from '../language/graph.ts';
import {
  type Core,
  canSubmit,
  countEnd,
  isPreDone,
  isService,
  jobstate,
  MARK,
  marked,
  nodeName,
  noteStatus,
  say,
  setMark,
  setStatus,
} from './core.ts';
import { queueScript } from './scripts.ts';
import { DAG_STATUS, STATUS } from './status.ts';

/** Starts a node whose parents have ended: runs its PRE script, or puts it into the queue of ready nodes. */
export function startNode(core: Core, node: number, isRetry: boolean): void {
  if (!isRetry && core.dag.savePoint.has(node)) core.out.push({ do: 'save-point', node });
  if (core.dag.scripts.get(node)?.PRE !== undefined && !marked(core, node, MARK.preScriptDone)) {
    setStatus(core, node, STATUS.preRun);
    core.counts.pre++;
    queueScript(core, node, 'PRE');
    return;
  }
  const first = isRetry ? core.settings.DAGMAN_RETRY_NODE_FIRST : false;
  if (first || core.settings.DAGMAN_SUBMIT_DEPTH_FIRST) core.ready.prepend(node);
  else core.ready.append(node);
}

/** Marks a node as done and starts the children that waited only for it. */
export function nodeDone(core: Core, node: number, startChildren: boolean): void {
  setStatus(core, node, STATUS.done);
  core.jobs.delete(node);
  if (marked(core, node, MARK.countedDone)) return;
  setMark(core, node, MARK.countedDone, true);
  countEnd(core, node, true);
  if (isService(core, node)) return;
  core.counts.done++;
  const { childStart, childList } = core.dag.edges;
  for (let i = childStart[node] ?? 0; i < (childStart[node + 1] ?? 0); i++) {
    parentEnded(core, childList[i] ?? 0, startChildren);
  }
}

function parentEnded(core: Core, child: number, start: boolean): void {
  const left = (core.waiting[child] ?? 0) - 1;
  core.waiting[child] = left;
  if (left === 0 && start && !core.finalStarted && canSubmit(core, child)) startNode(core, child, false);
}

/** A node failed for good. `futile`: its descendants can never run (after UNLESS-EXIT they are only left unready). */
export function nodeFailed(core: Core, node: number, futile: boolean): void {
  setStatus(core, node, STATUS.error);
  countEnd(core, node, false);
  if (!isService(core, node)) core.counts.failed++;
  noteStatus(core, DAG_STATUS.nodeFailed);
  if (futile) descendantsFutile(core, node);
}

/**
 * A child over a weak edge only needs `failed` to have run. Anything below a node that never runs never runs either.
 */
function descendantsFutile(core: Core, failed: number): void {
  const { childStart, childList, childWeak } = core.dag.edges;
  const stack: number[] = [];
  for (let i = childStart[failed] ?? 0; i < (childStart[failed + 1] ?? 0); i++) {
    const child = childList[i] ?? 0;
    if (childWeak?.[i] === 1) parentEnded(core, child, true);
    else if (makeFutile(core, child)) stack.push(child);
  }
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    for (let i = childStart[node] ?? 0; i < (childStart[node + 1] ?? 0); i++) {
      const child = childList[i] ?? 0;
      if (makeFutile(core, child)) stack.push(child);
    }
  }
}

function makeFutile(core: Core, node: number): boolean {
  if (core.status[node] === STATUS.futile || core.status[node] === STATUS.done) return false;
  setStatus(core, node, STATUS.futile);
  core.counts.futile++;
  return true;
}

/** Whether RETRY allows another attempt and ABORT-DAG-ON does not apply to what the node returned. */
export function mayRetry(core: Core, node: number): boolean {
  return !wantsAbort(core, node) && (core.retries[node] ?? 0) < (core.retryMax[node] ?? 0);
}

export function wantsAbort(core: Core, node: number): boolean {
  return core.dag.abortOn.get(node)?.status === core.returned[node];
}

export function restartNode(core: Core, node: number): void {
  const name = nodeName(core, node);
  const unlessExit = core.dag.unlessExit.get(node);
  if (core.finalStarted || (unlessExit !== undefined && unlessExit === core.returned[node])) {
    const why = core.finalStarted ? 'because final node is running ' : '';
    say(core, `Aborting further retries of node ${name} ${why}(last attempt returned ${core.returned[node]})`);
    nodeFailed(core, node, false);
    return;
  }
  setStatus(core, node, STATUS.ready);
  core.retries[node] = (core.retries[node] ?? 0) + 1;
  core.errors.delete(node);
  core.jobs.delete(node);
  setMark(core, node, MARK.unsuccessful | MARK.preScriptDone, false);
  core.sequence[node] = 0;
  say(core, `Retrying node ${name} (retry #${core.retries[node]} of ${core.retryMax[node]})...`);
  startNode(core, node, true);
}

/** ` (after n node retries)` if the node has a RETRY, else nothing. */
export function retriesNote(core: Core, node: number): string {
  return (core.retryMax[node] ?? 0) > 0 ? ` (after ${core.retries[node]} node retries)` : '';
}

/** Writes the JOB_SUCCESS or JOB_FAILURE line once all jobs of a node have left the queue. */
export function jobstateOfJobs(core: Core, node: number): void {
  const returned = core.returned[node] ?? 0;
  jobstate(core, node, returned === 0 ? 'JOB_SUCCESS' : 'JOB_FAILURE', String(returned));
}

/** Nodes marked DONE beforehand end before anything runs, so that their children can start. */
export function finishPreDone(core: Core): void {
  const { dag } = core;
  for (const node of dag.order) if (core.status[node] === STATUS.done) nodeDone(core, node, false);
  say(core, `Number of pre-completed nodes: ${core.counts.done}`);
  for (const node of dag.order) {
    if (core.status[node] === STATUS.done && (core.waiting[node] ?? 0) > 0 && isPreDone(core, node)) {
      say(
        core,
        `Warning: Node ${nodeName(core, node)} was marked as done even though parent nodes aren't complete. Child nodes may run out of order.`,
      );
    }
  }
}

/** What DAGMan prints about a failed node. */
export function describeNode(core: Core, node: number, submitFile: string): readonly string[] {
  const { dag } = core;
  const scripts = dag.scripts.get(node);
  const names = (list: Iterable<number>): string => [...list].map((n) => nodeName(core, n)).join(' ');
  const statusName = STATUS_PADDED[core.status[node] ?? 1] ?? '';
  const jobs = core.jobs.get(node);
  const children = dag.edges.childList.subarray(dag.edges.childStart[node] ?? 0, dag.edges.childStart[node + 1] ?? 0);
  const lines = [
    '---------------------- Node ----------------------',
    `      Node Name: ${nodeName(core, node)}`,
    `           Noop: ${((dag.flags[node] ?? 0) & 1) !== 0}`,
    `         NodeID: ${node}`,
    `    Node Status: ${statusName}`,
    `Node return val: ${core.returned[node]}`,
  ];
  const error = core.errors.get(node);
  if (core.status[node] === STATUS.error) lines.push(`          Error: ${error ?? ''}`);
  lines.push(`Job Submit File: ${submitFile}${isSubdag(dag, node) ? '.condor.sub' : ''}`);
  if (scripts?.PRE !== undefined) lines.push(`     PRE Script: ${scripts.PRE.command}`);
  if (scripts?.POST !== undefined) lines.push(`    POST Script: ${scripts.POST.command}`);
  if (scripts?.HOLD !== undefined) lines.push(`    HOLD Script: ${scripts.HOLD.command}`);
  if ((core.retryMax[node] ?? 0) > 0) lines.push(`          Retry: ${core.retryMax[node]}`);
  const id = jobs === undefined ? '[not yet submitted]' : `(${jobs.cluster}.${jobs.procs - 1}.0)`;
  lines.push(` HTCondor Job ID: ${id}`);
  const waits = (core.waiting[node] ?? 0) > 0 ? 1 : 0;
  lines.push(`PARENTS: ${names(parentsOf(dag, node))} WAITING: ${waits} CHILDREN: ${names(children)}`);
  return lines;
}

const STATUS_PADDED = [
  'STATUS_NOT_READY',
  'STATUS_READY    ',
  'STATUS_PRERUN   ',
  'STATUS_SUBMITTED',
  'STATUS_POSTRUN  ',
  'STATUS_DONE     ',
  'STATUS_ERROR    ',
  'STATUS_FUTILE   ',
] as const;
