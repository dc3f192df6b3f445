import { isNoop } from '../language/graph.ts';
import { type Core, canSubmit, isService, jobstate, MARK, nodeName, say, setMark, setStatus } from './core.ts';
import { abortedBy } from './ending.ts';
import { newJobSet, nodeLeftQueue, runPost } from './jobs.ts';
import { logTime } from '../times.ts';
import { jobstateOfJobs, nodeDone, nodeFailed } from './nodes.ts';
import { ReadyQueue } from './ready-queue.ts';
import { NO_RETURN, NOOP_ID, STATUS } from './status.ts';

/** Submits as many ready nodes as the throttles allow. */
export function submitReady(core: Core): void {
  if (core.halted && !core.finalStarted) return;
  wakeResting(core);
  for (;;) {
    if (core.exitCode !== undefined || core.ready.size === 0) return;
    const { limits, counts } = core;
    if (limits.maxJobs > 0 && counts.submitted >= limits.maxJobs) {
      core.deferrals.maxJobs += core.ready.size;
      return;
    }
    if (limits.maxIdle > 0 && counts.idle >= limits.maxIdle) {
      core.deferrals.maxIdle += core.ready.size;
      return;
    }
    const node = core.ready.pop();
    if (node === undefined) return;
    if (!park(core, node)) submitNode(core, node);
  }
}

/** Returns true if the node's category is full; the node then waits until another of the category ends. */
function park(core: Core, node: number): boolean {
  const category = core.dag.category[node] ?? -1;
  const limit = core.dag.categories[category]?.limit ?? -1;
  if (limit < 0 || (core.categoryRunning[category] ?? 0) < limit) return false;
  let queue = core.parked.get(category);
  if (queue === undefined) {
    queue = new ReadyQueue(core.dag.priority);
    core.parked.set(category, queue);
  }
  queue.append(node);
  core.counts.parked++;
  core.deferrals.category++;
  return true;
}

function submitNode(core: Core, node: number): void {
  say(core, `Submitting HTCondor Node ${nodeName(core, node)} job(s)...`);
  setStatus(core, node, STATUS.submitted);
  if (isService(core, node)) core.counts.services++;
  else {
    core.counts.submitted++;
    const category = core.dag.category[node] ?? -1;
    if (category >= 0) core.categoryRunning[category] = (core.categoryRunning[category] ?? 0) + 1;
  }
  if (isNoop(core.dag, node)) {
    runNoop(core, node);
    return;
  }
  // Until the submit is answered, it counts as one idle job so that a burst does not overshoot the limit.
  core.counts.idle++;
  core.out.push({ do: 'submit', node });
}

/** The job of a NOOP node ends as soon as it starts. */
function runNoop(core: Core, node: number): void {
  const serial = ++core.noopSerial;
  const id = `${NOOP_ID.cluster}.${NOOP_ID.proc}`;
  core.counts.jobsSubmitted++;
  core.counts.jobsCompleted++;
  core.out.push({ do: 'log', node, event: { type: 'noop-submit', serial } });
  core.out.push({ do: 'log', node, event: { type: 'noop-terminated', serial } });
  jobstate(core, node, 'SUBMIT', id);
  jobstate(core, node, 'JOB_TERMINATED', id);
  core.returned[node] = 0;
  core.postReturn.set(node, 0);
  nodeLeftQueue(core, node);
  jobstateOfJobs(core, node);
  if (core.dag.scripts.get(node)?.POST !== undefined) runPost(core, node);
  else {
    nodeDone(core, node, true);
    abortedBy(core, node, 'job');
  }
}

export function submitted(core: Core, node: number, cluster: number, procs: number): void {
  core.submitTries.delete(node);
  core.counts.idle += procs - 1;
  core.counts.jobsSubmitted += procs;
  core.jobs.set(node, newJobSet(cluster, procs));
  core.byCluster.set(cluster, node);
  setMark(core, node, MARK.runs, true);
  say(core, `\tassigned HTCondor ID (${cluster}.0.0)`);
  for (let proc = 0; proc < procs; proc++) jobstate(core, node, 'SUBMIT', `${cluster}.${proc}`);
}

/** A submit failed; `again` means that it may succeed later. RETRY does not apply: it is for jobs that ran. */
export function submitFailed(core: Core, node: number, reason: string, again: boolean): void {
  const name = nodeName(core, node);
  const tries = (core.submitTries.get(node) ?? 0) + 1;
  core.submitTries.set(node, tries);
  core.counts.idle--;
  nodeLeftQueue(core, node);
  jobstate(core, node, 'SUBMIT_FAILURE', '-');
  const oneLine = reason.replaceAll('\n', ' ');
  say(core, `Event: ULOG_SUBMIT_FAILURE for HTCondor Node ${name} (-1.-1.-1) {${logTime(core.now)}} ${oneLine}`);
  const most = core.settings.DAGMAN_MAX_SUBMIT_ATTEMPTS;
  if (again && tries < most && core.exitCode === undefined) {
    const seconds = 2 ** (tries - 1);
    say(
      core,
      `Job submit try ${tries}/${most} failed, will try again in >= ${seconds} second${seconds === 1 ? '' : 's'}.`,
    );
    setStatus(core, node, STATUS.ready);
    const at = core.now + seconds * 1000;
    core.resting.push({ node, at });
    core.out.push({ do: 'wake', at });
    return;
  }
  core.submitTries.delete(node);
  say(core, `Node submit failed after ${tries} tr${tries === 1 ? 'y' : 'ies'}.`);
  say(core, `Shortcutting node ${name} retries because of submit failure(s)`);
  core.errors.set(node, 'Job submit failed');
  core.retries[node] = core.retryMax[node] ?? 0;
  if (core.dag.scripts.get(node)?.POST !== undefined) {
    core.postReturn.set(node, NO_RETURN.submitFailed);
    runPost(core, node);
  } else nodeFailed(core, node, true);
}

/** The DAG was told to remove its jobs before this submit was sent. */
export function unsent(core: Core, node: number): void {
  core.counts.idle--;
  nodeLeftQueue(core, node);
  setStatus(core, node, STATUS.notReady);
}

function wakeResting(core: Core): void {
  if (core.resting.length === 0) return;
  const due = core.resting.filter((r) => r.at <= core.now);
  if (due.length === 0) return;
  core.resting.splice(0, core.resting.length, ...core.resting.filter((r) => r.at > core.now));
  for (const { node } of due) {
    if (!canSubmit(core, node)) continue;
    if (core.settings.DAGMAN_RETRY_SUBMIT_FIRST) core.ready.prepend(node);
    else core.ready.append(node);
  }
}
