import { isNoop } from '../language/graph.ts';
import { type Core, isService, jobstate, MARK, nodeName, say, setMark, setStatus } from './core.ts';
import { abortedBy } from './ending.ts';
import { runPost } from './jobs.ts';
import type { NodeJobEnd } from './messages.ts';
import { mayRetry, nodeDone, nodeFailed, restartNode, retriesNote } from './nodes.ts';
import { jobIdOf } from './scripts.ts';
import { signalText } from './signals.ts';
import { NO_RETURN, NOOP_ID, STATUS } from './status.ts';

const MAX_SIGNAL = 64;

function returnOf(end: NodeJobEnd): number {
  return 'code' in end ? end.code : -end.signal;
}

/** The PRE script ended: the job may run, PRE_SKIP may count it as done, or the node has failed. */
export function preEnded(core: Core, node: number, end: NodeJobEnd): void {
  const name = nodeName(core, node);
  const returned = returnOf(end);
  core.counts.pre--;
  core.returned[node] = returned;
  setMark(core, node, MARK.preScriptDone, true);
  if (returned === 0) {
    core.preReturn.set(node, 0);
    jobstate(core, node, 'PRE_SCRIPT_SUCCESS', '-');
    say(core, `PRE Script of node ${name} completed successfully.`);
    const tooLate = core.finalStarted && node !== core.dag.final;
    setStatus(core, node, tooLate ? STATUS.notReady : STATUS.ready);
    if (tooLate) return;
    if (core.settings.DAGMAN_SUBMIT_DEPTH_FIRST) core.ready.prepend(node);
    else core.ready.append(node);
  } else preFailed(core, node, end);
  abortedBy(core, node, 'PRE script');
}

function preFailed(core: Core, node: number, end: NodeJobEnd): void {
  const name = nodeName(core, node);
  const returned = core.returned[node] ?? 0;
  if ('code' in end) {
    say(core, `PRE Script of Node ${name} failed with status ${end.code}`);
    core.errors.set(node, `PRE Script failed with status ${end.code}`);
  } else {
    say(core, `PRE Script of node ${name} died on ${signalText(end.signal)}`);
    core.errors.set(node, `PRE Script died on ${signalText(end.signal)}`);
  }
  jobstate(core, node, 'PRE_SCRIPT_FAILURE', '-');
  const { scripts, preSkip } = core.dag;
  if (preSkip.get(node) === returned) {
    say(core, `PRE_SKIP return value ${returned} indicates we are done (successfully) with node ${name}`);
    core.errors.delete(node);
    core.returned[node] = 0;
    core.out.push({ do: 'log', node, event: { type: 'pre-skip', serial: ++core.noopSerial } });
    jobstate(core, node, 'PRESKIP', `${NOOP_ID.cluster}.${NOOP_ID.proc}`);
    nodeDone(core, node, true);
  } else if (core.settings.DAGMAN_ALWAYS_RUN_POST && scripts.get(node)?.POST !== undefined) {
    core.preReturn.set(node, returned);
    core.postReturn.set(node, NO_RETURN.jobSkipped);
    setMark(core, node, MARK.unsuccessful, true);
    runPost(core, node);
  } else if (mayRetry(core, node)) {
    setStatus(core, node, STATUS.error);
    restartNode(core, node);
  } else {
    setMark(core, node, MARK.unsuccessful, true);
    core.errors.set(node, (core.errors.get(node) ?? '') + retriesNote(core, node));
    nodeFailed(core, node, true);
  }
}

/** The POST script ended: it decides, in place of the job, whether the node has failed. */
export function postEnded(core: Core, node: number, end: NodeJobEnd): void {
  const name = nodeName(core, node);
  const id = jobIdOf(core, node);
  const ofJob = core.returned[node] ?? 0;
  core.counts.post--;
  const cluster = isNoop(core.dag, node) ? NOOP_ID.cluster : (core.jobs.get(node)?.cluster ?? -1);
  const proc = isNoop(core.dag, node) ? NOOP_ID.proc : 0;
  core.out.push({ do: 'log', node, event: { type: 'post-script-terminated', cluster, proc, end } });
  jobstate(core, node, 'POST_SCRIPT_TERMINATED', dash(id));
  core.returned[node] = returnOf(end);
  if (core.returned[node] === 0) {
    say(core, `POST Script of node ${name} completed successfully.`);
    core.errors.delete(node);
    jobstate(core, node, 'POST_SCRIPT_SUCCESS', dash(id));
    nodeDone(core, node, true);
  } else {
    const how = 'code' in end ? `failed with status ${end.code}` : `died on signal ${end.signal}`;
    say(core, `POST Script of node ${name} ${how}`);
    setStatus(core, node, STATUS.error);
    jobstate(core, node, 'POST_SCRIPT_FAILURE', dash(id));
    if (mayRetry(core, node)) {
      // Recorded here in case UNLESS-EXIT prevents the retry.
      core.errors.set(node, `POST script ${how}`);
      restartNode(core, node);
    } else {
      core.errors.set(node, `${outcomeOfJob(core, node, ofJob)} and POST Script ${how}${retriesNote(core, node)}`);
      nodeFailed(core, node, !isService(core, node));
    }
  }
  abortedBy(core, node, 'POST script');
}

/** What DAGMan says about the job when POST fails, including one whose submit failed. */
function outcomeOfJob(core: Core, node: number, returned: number): string {
  if (core.postReturn.get(node) === NO_RETURN.submitFailed) return 'Job submit failed';
  if (returned > 0) return `Job exited with status ${returned}`;
  if (returned < 0 && returned >= -MAX_SIGNAL) return `Job died on signal ${-returned}`;
  return `Job failed due to DAGMAN error ${returned}`;
}

function dash(id: string): string {
  return id.startsWith('-1') ? '-' : id;
}
