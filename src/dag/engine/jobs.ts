import { KIND } from '../language/graph.ts';
import {
  type Core,
  isService,
  type JobSet,
  jobstate,
  MARK,
  nodeName,
  PROC,
  procsInQueue,
  say,
  setMark,
  setStatus,
} from './core.ts';
import { abortedBy, crash, finalEnded, logRemoval } from './ending.ts';
import type { NodeJobEnd, JobChange } from './messages.ts';
import { logTime } from '../times.ts';
import { jobstateOfJobs, mayRetry, nodeDone, nodeFailed, restartNode, retriesNote } from './nodes.ts';
import { queueScript } from './scripts.ts';
import { NO_RETURN, STATUS } from './status.ts';

const JOBSTATE_WORD: Readonly<Record<JobChange['what'], string>> = {
  execute: 'EXECUTE',
  evicted: 'JOB_EVICTED',
  suspended: 'JOB_SUSPENDED',
  unsuspended: 'JOB_UNSUSPENDED',
  held: 'JOB_HELD',
  released: 'JOB_RELEASED',
  aborted: 'JOB_ABORTED',
  terminated: 'JOB_TERMINATED',
};

/** A job of a node changed. Changes of jobs that are not, or no longer, this DAG's are ignored. */
export function jobChanged(core: Core, cluster: number, proc: number, change: JobChange): void {
  const node = core.byCluster.get(cluster);
  const jobs = node === undefined ? undefined : core.jobs.get(node);
  if (node === undefined || jobs === undefined || jobs.cluster !== cluster || proc < 0 || proc >= jobs.procs) return;
  const word = JOBSTATE_WORD[change.what];
  const id = `(${cluster}.${proc}.0)`;
  say(core, `Event: ULOG_${word} for HTCondor Node ${nodeName(core, node)} ${id} {${logTime(core.now)}}`);
  if (has(jobs, proc, PROC.ended)) return;
  jobstate(core, node, word, `${cluster}.${proc}`);
  switch (change.what) {
    case 'execute':
    case 'unsuspended':
      setIdle(core, jobs, proc, false);
      setBit(jobs, proc, PROC.executed, true);
      break;
    case 'evicted':
    case 'suspended':
      setIdle(core, jobs, proc, true);
      break;
    case 'held':
      jobHeld(core, node, jobs, proc, change.reason);
      break;
    case 'released':
      released(core, jobs, proc);
      break;
    case 'aborted':
    case 'terminated':
      jobEnded(core, node, jobs, proc, change.what === 'terminated' ? change.end : undefined);
      break;
  }
}

/**
 * Once the final node has run, jobs that the DAG removed before it count as removed even if they are still in the
 * queue.
 */
export function countAsRemoved(core: Core): void {
  for (const [cluster, node] of core.byCluster) {
    if (isService(core, node)) continue;
    logRemoval(core, node, cluster);
    for (const proc of procsInQueue(core, node, cluster)) jobChanged(core, cluster, proc, { what: 'aborted' });
  }
}

function jobHeld(core: Core, node: number, jobs: JobSet, proc: number, reason: string): void {
  say(core, `  Hold reason: ${reason === '' ? '(unknown)' : reason}`);
  if (!has(jobs, proc, PROC.held)) {
    setBit(jobs, proc, PROC.held, true);
    jobs.held++;
    core.counts.held++;
    const limit = core.settings.DAGMAN_MAX_JOB_HOLDS;
    if (limit > 0 && jobs.held >= limit) {
      say(
        core,
        `Total hold count for job ${jobs.cluster} (node ${nodeName(core, node)})has reached DAGMAN_MAX_JOB_HOLDS (${limit}); all job proc(s) for this node will now be removed`,
      );
      removeNode(core, node, jobs, 'DAG Limit: Max number of held jobs was reached.');
    }
  }
  if (core.dag.scripts.get(node)?.HOLD !== undefined) queueScript(core, node, 'HOLD');
  setIdle(core, jobs, proc, true);
}

function released(core: Core, jobs: JobSet, proc: number): void {
  if (!has(jobs, proc, PROC.held)) return;
  setBit(jobs, proc, PROC.held, false);
  jobs.held--;
  core.counts.held--;
}

/** One job of a node left the queue; `end` is undefined if it was removed. */
function jobEnded(core: Core, node: number, jobs: JobSet, proc: number, end: NodeJobEnd | undefined): void {
  setIdle(core, jobs, proc, false);
  released(core, jobs, proc);
  setBit(jobs, proc, PROC.ended | PROC.executed, true);
  jobs.queued--;
  core.counts.jobsCompleted++;
  if (jobs.queued === 0) nodeLeftQueue(core, node);
  if (core.dag.kind[node] === KIND.provisioner && !core.provisioned) {
    crash(core, `ERROR: Provisioner node ${nodeName(core, node)} job exited before giving DAGMan the go ahead!`);
    return;
  }
  noteOutcome(core, node, jobs, proc, end);
  const failed = jobs.failed > tolerance(core, node, jobs);
  if (failed && core.status[node] !== STATUS.error) {
    setStatus(core, node, STATUS.error);
    setMark(core, node, MARK.unsuccessful, true);
    const mode = core.dag.tolerance.get(node)?.mode;
    const remove = mode === undefined ? core.settings.DAGMAN_REMOVE_JOB_LIST_ON_FAILURE : mode === 'fail-fast';
    if (jobs.queued > 0 && remove) {
      const id = `(${jobs.cluster}.${proc}.0)`;
      removeNode(
        core,
        node,
        jobs,
        end === undefined
          ? `Node Error: DAG node ${nodeName(core, node)} ${id} got ULOG_JOB_ABORTED event.`
          : `Node Error: DAG node ${nodeName(core, node)} ${id} reached failure tolerance after ${jobs.failed} failures.`,
      );
    }
  }
  if (jobs.queued === 0) allJobsEnded(core, node, failed);
  if (end !== undefined && core.dag.scripts.get(node)?.POST === undefined) abortedBy(core, node, 'job');
}

/** A node returns its first failure or, if nothing failed, its success. */
function noteOutcome(core: Core, node: number, jobs: JobSet, proc: number, end: NodeJobEnd | undefined): void {
  const id = `(${jobs.cluster}.${proc}.0)`;
  const name = nodeName(core, node);
  const success = end !== undefined && 'code' in end && end.code === 0;
  jobs.exit[proc] = end === undefined ? undefined : 'code' in end ? end.code : -1;
  if (success) {
    if (core.status[node] === STATUS.error)
      say(core, `Node ${name} job proc ${id} completed successfully, but status is STATUS_ERROR`);
    else {
      core.returned[node] = 0;
      core.postReturn.set(node, 0);
    }
    say(core, `Node ${name} job proc ${id} completed successfully.`);
    return;
  }
  jobs.failed++;
  let returned: number = NO_RETURN.jobAborted;
  let error = `HTCondor reported ULOG_JOB_ABORTED event for job proc ${id}`;
  if (end !== undefined) {
    returned = 'code' in end ? end.code : -end.signal;
    const how = 'code' in end ? `failed with status ${end.code}` : `failed with signal ${end.signal}`;
    error = `Job proc ${id} ${how}`;
    say(core, `Node ${name} job proc ${id} ${how}.`);
  }
  if (jobs.failed > 1) return;
  core.errors.set(node, error);
  core.returned[node] = returned;
  core.postReturn.set(node, returned);
}

function allJobsEnded(core: Core, node: number, failed: boolean): void {
  say(core, `Node ${nodeName(core, node)} job(s) have exited the queue`);
  jobstateOfJobs(core, node);
  if (core.dag.scripts.get(node)?.POST !== undefined && !finalEnded(core)) {
    runPost(core, node);
    return;
  }
  if (!failed) {
    nodeDone(core, node, true);
    return;
  }
  if (mayRetry(core, node)) restartNode(core, node);
  else if (core.settings.DAGMAN_PUT_FAILED_JOBS_ON_HOLD) {
    setMark(core, node, MARK.hold, true);
    core.retryMax[node] = (core.retryMax[node] ?? 0) + 1;
    restartNode(core, node);
  } else {
    core.errors.set(node, (core.errors.get(node) ?? '') + retriesNote(core, node));
    nodeFailed(core, node, true);
  }
}

export function runPost(core: Core, node: number): void {
  setStatus(core, node, STATUS.postRun);
  core.counts.post++;
  queueScript(core, node, 'POST');
}

function removeNode(core: Core, node: number, jobs: JobSet, reason: string): void {
  core.out.push({ do: 'remove-node', node, cluster: jobs.cluster, reason });
}

/** How many of its jobs may fail before the node itself fails. */
function tolerance(core: Core, node: number, jobs: JobSet): number {
  const own = core.dag.tolerance.get(node);
  if (own === undefined) return core.settings.DAGMAN_NODE_JOB_FAILURE_TOLERANCE;
  return own.percent ? Math.floor((jobs.procs * own.limit) / 100) : own.limit;
}

/** Frees the node's slot in the queue and in its category. */
export function nodeLeftQueue(core: Core, node: number): void {
  const jobs = core.jobs.get(node);
  if (jobs !== undefined) core.byCluster.delete(jobs.cluster);
  if (isService(core, node)) {
    core.counts.services--;
    return;
  }
  core.counts.submitted--;
  const category = core.dag.category[node] ?? -1;
  if (category < 0) return;
  core.categoryRunning[category] = (core.categoryRunning[category] ?? 0) - 1;
  const next = core.parked.get(category)?.pop();
  if (next === undefined) return;
  core.counts.parked--;
  core.ready.prepend(next);
}

export function newJobSet(cluster: number, procs: number): JobSet {
  return {
    cluster,
    procs,
    queued: procs,
    held: 0,
    failed: 0,
    state: new Uint8Array(procs).fill(PROC.idle),
    exit: Array.from({ length: procs }, () => undefined),
  };
}

function setIdle(core: Core, jobs: JobSet, proc: number, idle: boolean): void {
  if (has(jobs, proc, PROC.idle) === idle) return;
  setBit(jobs, proc, PROC.idle, idle);
  core.counts.idle += idle ? 1 : -1;
}

function has(jobs: JobSet, proc: number, bit: number): boolean {
  return ((jobs.state[proc] ?? 0) & bit) !== 0;
}

function setBit(jobs: JobSet, proc: number, bit: number, on: boolean): void {
  const old = jobs.state[proc] ?? 0;
  jobs.state[proc] = on ? old | bit : old & ~bit;
}
