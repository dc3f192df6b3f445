import { descriptionOf } from '../language/graph.ts';
import { findCycle } from '../cycles.ts';
import {
  type Core,
  doneCount,
  forceStatus,
  isService,
  nodeCount,
  nodeName,
  procsInQueue,
  readyCount,
  say,
  setStatus,
  unreadyCount,
} from './core.ts';
import { describeNode, nodeDone, startNode, wantsAbort } from './nodes.ts';
import { dropWaitingPre } from './scripts.ts';
import { DAG_STATUS, DAG_STATUS_NAMES, type DagStatus, EXIT, STATUS } from './status.ts';

/** Nothing is running and nothing can start, so the DAG can only end. */
export function finishedRunning(core: Core, withFinal: boolean): boolean {
  const { counts } = core;
  if (withFinal && core.dag.final !== undefined && !core.finalStarted) return false;
  if (core.halted) return counts.submitted === 0 && core.scripts.PRE.running + core.scripts.POST.running === 0;
  return counts.submitted === 0 && readyCount(core) === 0 && counts.pre + counts.post === 0;
}

function finalDone(core: Core): boolean {
  return core.dag.final !== undefined && core.status[core.dag.final] === STATUS.done;
}

/** The final node has run, successfully or not. */
export function finalEnded(core: Core): boolean {
  const { final } = core.dag;
  if (final === undefined || !core.finalStarted) return false;
  // One of its jobs may have failed while others are still in the queue.
  return finalDone(core) || (core.status[final] === STATUS.error && (core.jobs.get(final)?.queued ?? 0) === 0);
}

export function succeeded(core: Core, withFinal: boolean): boolean {
  if (!finishedRunning(core, withFinal)) return false;
  if (doneCount(core, withFinal) === nodeCount(core, withFinal)) return true;
  return (withFinal && finalDone(core)) || (core.aborted && core.dagStatus === DAG_STATUS.ok);
}

export function failed(core: Core, withFinal: boolean): boolean {
  if (!finishedRunning(core, withFinal)) return false;
  if ((withFinal && finalDone(core)) || (core.aborted && core.dagStatus === DAG_STATUS.ok)) return false;
  return core.halted || core.counts.failed > 0;
}

/** Nothing failed and nothing is running, yet some nodes are left: they wait for each other. */
export function stuck(core: Core, withFinal: boolean): boolean {
  return (
    finishedRunning(core, withFinal) &&
    !succeeded(core, withFinal) &&
    core.counts.failed === 0 &&
    !core.halted &&
    !core.aborted
  );
}

/** Ends the DAG if it is time, or starts the final node. */
export function checkEnd(core: Core): void {
  if (core.exitCode !== undefined) return;
  if (succeeded(core, true)) {
    removeServices(core);
    say(core, 'All jobs Completed!');
    sayDeferrals(core);
    finish(core, EXIT.ok);
    return;
  }
  if (failed(core, true)) {
    say(core, 'ERROR: the following job(s) failed:');
    sayFailed(core);
    shutdown(core, EXIT.error, core.dagStatus);
    return;
  }
  if (finalEnded(core)) {
    endWithFinal(core);
    return;
  }
  if (succeeded(core, false)) {
    startFinal(core);
    return;
  }
  if (core.halted && core.counts.submitted === 0 && core.counts.post === 0 && !core.finalStarted) {
    say(core, 'Exiting because DAG is halted and no jobs or scripts are running');
    say(core, 'ERROR: the following Node(s) failed:');
    sayFailed(core);
    shutdown(core, EXIT.error, DAG_STATUS.halted);
    return;
  }
  if (finishedRunning(core, false)) shutdown(core, EXIT.error, sayWhyNotDone(core));
}

/** The final node decides the outcome, even if a node is still waiting (for the script after a removed job, say). */
function endWithFinal(core: Core): void {
  if (finalDone(core)) {
    removeServices(core);
    sayDeferrals(core);
    finish(core, EXIT.ok);
    return;
  }
  say(core, 'ERROR: the following job(s) failed:');
  sayFailed(core);
  shutdown(core, EXIT.error, core.dagStatus);
}

function sayWhyNotDone(core: Core): DagStatus {
  if (failed(core, false)) {
    say(core, 'ERROR: the following Node(s) failed:');
    sayFailed(core);
    return DAG_STATUS.nodeFailed;
  }
  say(core, 'ERROR: DAG finished but not all nodes are complete -- checking for a cycle...');
  const cycle = findCycle(core.dag);
  if (cycle === undefined) {
    say(core, '... ERROR: no cycle found; unknown error condition');
    return DAG_STATUS.error;
  }
  say(core, '... ERROR: a cycle exists in the dag, please check input');
  say(core, `Cycle: ${cycle.map((node) => nodeName(core, node)).join(' -> ')}`);
  return DAG_STATUS.cycle;
}

/** Ends the DAG early: writes a rescue file, removes its jobs, and runs the final node if there is one. */
export function shutdown(core: Core, exitCode: number, status: DagStatus): void {
  if (core.exitCode !== undefined) return;
  say(core, 'Aborting DAG...');
  forceStatus(core, status);
  if (exitCode !== EXIT.ok) {
    if (core.settings.DAGMAN_MAX_RESCUE_NUM > 0) core.out.push({ do: 'rescue' });
    else say(core, 'No rescue DAG written because DAGMAN_MAX_RESCUE_NUM is 0');
  }
  say(core, 'Removing submitted jobs...');
  if (status !== DAG_STATUS.removed || core.settings.DAGMAN_REMOVE_NODE_JOBS) {
    const reason = reasonOfRemoval(status);
    const beforeFinal = core.dag.final !== undefined && !core.finalStarted;
    core.out.push({ do: 'remove-all', reason, beforeFinal });
  }
  if (core.scripts.PRE.running + core.scripts.POST.running > 0) {
    say(core, 'Removing running scripts...');
    core.out.push({ do: 'kill-scripts' });
  }
  sayDeferrals(core);
  if (!startFinal(core)) finish(core, exitCode);
}

function reasonOfRemoval(status: DagStatus): string {
  return status === DAG_STATUS.removed
    ? 'DAG Removed: User removed scheduler job from queue.'
    : 'DAG Abort: DAG is exiting and writing rescue file.';
}

/**
 * Jobs still in the queue when the DAG ends are removed with it, or by the queue after it. Nobody would then write
 * their end to the node jobs' log, and its readers would wait forever.
 */
function logRemovals(core: Core): void {
  for (const [cluster, node] of core.byCluster) logRemoval(core, node, cluster);
}

export function logRemoval(core: Core, node: number, cluster: number, reason = reasonOfRemoval(core.dagStatus)): void {
  for (const proc of procsInQueue(core, node, cluster)) {
    core.out.push({ do: 'log', node, event: { type: 'aborted', cluster, proc, reason } });
  }
}

/** Ends the DAG after an internal error, without a rescue file or the final node. */
export function crash(core: Core, message: string): void {
  say(core, message);
  core.exitCode = EXIT.error;
  logRemovals(core);
  core.out.push({ do: 'finish', code: EXIT.error, removed: false, crashed: true });
}

function finish(core: Core, code: number): void {
  core.exitCode = code;
  sayStatus(core);
  logRemovals(core);
  core.out.push({ do: 'finish', code, removed: core.dagStatus === DAG_STATUS.removed, crashed: false });
}

/** The final node runs once, after all others have ended or can no longer start. */
function startFinal(core: Core): boolean {
  const { final } = core.dag;
  if (final === undefined || core.status[final] !== STATUS.notReady || core.finalStarted) return false;
  say(core, 'Starting final node...');
  const waiting = [...core.ready.drain(), ...core.resting.splice(0).map((r) => r.node)];
  for (const queue of core.parked.values()) waiting.push(...queue.drain());
  core.counts.parked = 0;
  waiting.push(...dropWaitingPre(core));
  for (const node of waiting) setStatus(core, node, STATUS.notReady);
  setStatus(core, final, STATUS.ready);
  core.finalStarted = true;
  startNode(core, final, false);
  return true;
}

function removeServices(core: Core): void {
  for (const node of core.dag.services) {
    const jobs = core.jobs.get(node);
    if (core.status[node] !== STATUS.submitted || jobs === undefined) continue;
    const reason = 'DAG finished: a service ends with its DAG.';
    core.out.push({ do: 'remove-node', node, cluster: jobs.cluster, reason });
    logRemoval(core, node, jobs.cluster, reason);
    core.counts.services--;
    nodeDone(core, node, false);
  }
}

/** ABORT-DAG-ON: returns true if the node's return value ends the DAG. */
export function abortedBy(core: Core, node: number, what: string): boolean {
  if (!wantsAbort(core, node)) return false;
  say(core, `Aborting DAG because we got the ABORT exit value from a ${what}`);
  core.aborted = true;
  const code = core.dag.abortOn.get(node)?.code;
  if (code === undefined) shutdown(core, (core.returned[node] ?? 0) & 255, DAG_STATUS.abort);
  else shutdown(core, code, code === 0 ? DAG_STATUS.ok : DAG_STATUS.abort);
  return true;
}

function sayFailed(core: Core): void {
  for (const node of core.dag.order) {
    if (core.status[node] !== STATUS.error || isService(core, node)) continue;
    const description = descriptionOf(core.dag, node);
    const file = description.is === 'text' ? description.name : description.file;
    for (const line of describeNode(core, node, file)) say(core, line);
  }
  say(core, '---------------------------------------\t<END>');
}

function sayDeferrals(core: Core): void {
  const { deferrals: d, limits: l } = core;
  say(core, `Note: ${d.maxJobs} total node deferrals because of -MaxJobs limit (${l.maxJobs})`);
  say(core, `Note: ${d.maxIdle} total node deferrals because of -MaxIdle limit (${l.maxIdle})`);
  say(core, `Note: ${d.category} total node deferrals because of node category throttles`);
  say(core, `Note: ${d.PRE} total PRE script deferrals because of -MaxPre limit (${l.maxPre}) or DEFER`);
  say(core, `Note: ${d.POST} total POST script deferrals because of -MaxPost limit (${l.maxPost}) or DEFER`);
  say(core, `Note: ${d.HOLD} total HOLD script deferrals because of -MaxHold limit (${l.maxHold}) or DEFER`);
}

/** Logs the table of node counts by state. */
export function sayStatus(core: Core): void {
  const { counts: c } = core;
  const row = [
    [c.done, 5],
    [c.pre, 8],
    [c.submitted, 9],
    [c.post, 8],
    [readyCount(core), 8],
    [unreadyCount(core), 11],
    [c.failed, 9],
    [c.futile, 9],
  ] as const;
  say(core, `DAG status: ${core.dagStatus} (${DAG_STATUS_NAMES[core.dagStatus]})`);
  say(core, `Of ${nodeCount(core, true)} nodes total:`);
  say(core, ' Done     Pre   Queued    Post   Ready   Un-Ready   Failed   Futile');
  say(core, '  ===     ===      ===     ===     ===        ===      ===      ===');
  say(core, row.map(([n, width]) => String(n).padStart(width)).join(''));
  say(core, `${c.held} job proc(s) currently held`);
}
