import { type Core, canSubmit, doneCount, nodeCount, readyCount, statusOf, unreadyCount } from '../engine/core.ts';
import { failed, finishedRunning, stuck, succeeded } from '../engine/ending.ts';
import { DAG_STATUS, STATUS, STATUS_NAMES, type Status } from '../engine/status.ts';
import { isNoop, nameOf } from '../language/graph.ts';
import { ctime, unixSeconds } from '../times.ts';
import { classadString } from './classad-string.ts';

interface Verdict {
  readonly status: Status;
  readonly note: string;
  /** The file will not be written again, so nodes still in progress count as failed. */
  readonly last: boolean;
}

/** What happens to the manager as the file is written. */
export type JobFate = 'here' | 'held' | 'removed';

function verdict(core: Core, fate: JobFate): Verdict {
  const removed = fate === 'removed';
  const hasFinal = core.dag.final !== undefined && !finishedRunning(core, true);
  if (succeeded(core, true)) return { status: STATUS.done, note: 'success', last: true };
  if (failed(core, true)) {
    return { status: STATUS.error, note: core.dagStatus === DAG_STATUS.abort ? 'aborted' : 'failed', last: true };
  }
  if (stuck(core, true)) return { status: STATUS.error, note: 'cycle', last: false };
  if (fate === 'held') return { status: STATUS.submitted, note: 'held', last: false };
  if (removed || core.aborted) {
    const note = removed ? 'removed' : 'aborted';
    return hasFinal ? { status: STATUS.submitted, note, last: false } : { status: STATUS.error, note, last: true };
  }
  return { status: STATUS.submitted, note: '', last: false };
}

/** The text of a NODE_STATUS_FILE (manual, "Capturing the status of nodes in a file"); `now` in Unix milliseconds. */
export function nodeStatusText(core: Core, dagFiles: readonly string[], now: number, fate: JobFate): string {
  const v = verdict(core, fate);
  const { counts } = core;
  const active = v.last ? 0 : 1;
  const gone = v.last ? counts.pre + counts.submitted + counts.post : 0;
  const next =
    finishedRunning(core, true) || fate === 'removed' ? 0 : now + (core.dag.nodeStatus?.minUpdate ?? 0) * 1000;
  const parts = [
    '[\n  Type = "DagStatus";\n',
    `  DagFiles = {\n${dagFiles.map((file) => `    ${classadString(file)}`).join(',\n')}\n  };\n`,
    `  Timestamp = ${unixSeconds(now)}; /* ${classadString(ctime(now))} */\n`,
    `  DagStatus = ${v.status}; /* "${STATUS_NAMES[v.status]} (${v.note})" */\n`,
    `  NodesTotal = ${nodeCount(core, true)};\n  NodesDone = ${doneCount(core, true)};\n`,
    `  NodesPre = ${counts.pre * active};\n  NodesQueued = ${counts.submitted * active};\n`,
    `  NodesPost = ${counts.post * active};\n  NodesReady = ${readyCount(core)};\n`,
    `  NodesUnready = ${unreadyCount(core)};\n  NodesFutile = ${counts.futile};\n  NodesFailed = ${counts.failed + gone};\n`,
    `  JobProcsHeld = ${counts.held * active};\n  JobProcsIdle = ${(counts.idle - counts.held) * active}; /* includes held */\n]\n`,
  ];
  for (const node of core.dag.order) parts.push(nodeText(core, node, v.last));
  const nextText = next === 0 ? '0; /* "none" */' : `${unixSeconds(next)}; /* ${classadString(ctime(next))} */`;
  parts.push(
    `[\n  Type = "StatusEnd";\n  EndTime = ${unixSeconds(now)}; /* ${classadString(ctime(now))} */\n`,
    `  NextUpdate = ${nextText}\n]\n`,
  );
  return parts.join('');
}

function nodeText(core: Core, node: number, last: boolean): string {
  const jobs = core.jobs.get(node);
  const under = statusOf(core, node);
  let status = under;
  let note = '';
  let queued = jobs?.queued ?? 0;
  let held = jobs?.held ?? 0;
  switch (under) {
    case STATUS.ready:
      if (!canSubmit(core, node)) status = STATUS.notReady;
      break;
    case STATUS.submitted:
    case STATUS.preRun:
    case STATUS.postRun:
      if (last) {
        status = STATUS.error;
        note = `Was ${STATUS_NAMES[under]}`;
        queued = 0;
        held = 0;
      } else if (under === STATUS.submitted) {
        note = jobs === undefined || isNoop(core.dag, node) || ((jobs.state[0] ?? 0) & 1) !== 0 ? 'idle' : 'not_idle';
      }
      break;
    case STATUS.error:
      note = core.errors.get(node) ?? '';
      break;
    case STATUS.futile:
      note = 'Had an ancestor node fail';
      break;
    case STATUS.done:
      if (((core.dag.flags[node] ?? 0) & 2) !== 0) note = 'User defined as DONE';
      break;
    case STATUS.notReady:
      break;
  }
  return (
    `[\n  Type = "NodeStatus";\n  Node = ${classadString(nameOf(core.dag, node))};\n` +
    `  NodeStatus = ${status}; /* "${STATUS_NAMES[status]}" */\n  StatusDetails = ${classadString(note)};\n` +
    `  RetryCount = ${core.retries[node] ?? 0};\n  JobProcsQueued = ${queued};\n  JobProcsHeld = ${held};\n]\n`
  );
}
