import { resourcesOf, spentInAllOf, spentOf } from '../job/log-usage.ts';
import { quoted } from '../job/values.ts';
import { NO_CPU, type UserLogBody, type UserLogEvent } from '../user-log/event.ts';
import { printUserLog } from '../user-log/text.ts';
import { NOOP_ID } from './engine/status.ts';
import type { NodeJobEnd } from './engine/messages.ts';
import type { JobLogEvent } from './manager/world.ts';

const SPENT = { runRemote: NO_CPU, runLocal: NO_CPU, sent: 0, received: 0 };
const SPENT_IN_ALL = { totalRemote: NO_CPU, totalLocal: NO_CPU, totalSent: 0, totalReceived: 0 };
/** HTCondor's code for an eviction by a requeue; a hold has its own. */
const REQUEUED = 1022;

/**
 * One event of `NAME.dag.nodes.log` in the user log's format; as in DAGMan, NOOP nodes appear there as jobs of cluster
 * 0.
 */
export function nodesLogText(event: JobLogEvent, host: string, batchName: string): string {
  return printUserLog(event.about === 'job' ? ofJob(event, host, batchName) : ofNode(event));
}

function ofJob(
  { at, cluster, proc, node, change }: Extract<JobLogEvent, { readonly about: 'job' }>,
  host: string,
  batchName: string,
): UserLogEvent {
  const notes = `[ DAGNodeName = ${quoted(node)}; JobBatchName = ${quoted(batchName)} ]`;
  return { at, cluster, proc, ...jobBody(change, host, notes) };
}

function jobBody(
  change: Extract<JobLogEvent, { readonly about: 'job' }>['change'],
  host: string,
  notes: string,
): UserLogBody {
  switch (change.what) {
    case 'submit':
      return { type: 'submit', host: `<${host}>`, notes };
    case 'execute':
      return { type: 'execute', host: `<${host}>` };
    case 'evicted':
      return { type: 'evicted', ...SPENT, code: change.code ?? REQUEUED, subcode: 0 };
    case 'suspended':
      return { type: 'suspended', processes: 1 };
    case 'unsuspended':
      return { type: 'unsuspended' };
    case 'released':
      return { type: 'released' };
    case 'aborted':
      return { type: 'aborted' };
    case 'held':
      return {
        type: 'held',
        reason: change.reason === '' ? 'Reason unspecified' : change.reason,
        code: change.code ?? 0,
        subcode: change.subcode ?? 0,
      };
    case 'terminated':
      return { type: 'terminated', ...usageOf(change.usage ?? {}), ...endingOf(change.end) };
  }
}

function ofNode({ at, node, event }: Extract<JobLogEvent, { readonly about: 'node' }>): UserLogEvent {
  if (event.type === 'post-script-terminated') {
    return { at, cluster: event.cluster, proc: event.proc, type: 'post-script', node, ...endingOf(event.end) };
  }
  if (event.type === 'aborted') {
    const { cluster, proc, reason } = event;
    return { at, cluster, proc, type: 'aborted', reason };
  }
  const stamp = { at, ...NOOP_ID, subproc: event.serial };
  switch (event.type) {
    case 'noop-submit':
      return { ...stamp, type: 'submit', host: '<dummy-submit-for-noop-job>', notes: `DAG Node: ${node}` };
    case 'noop-terminated':
      return { ...stamp, type: 'terminated', ...SPENT, ...SPENT_IN_ALL, exitCode: 0 };
    case 'pre-skip':
      return { ...stamp, type: 'pre-skip', node };
  }
}

function usageOf(usage: Readonly<Record<string, string>>) {
  const ad = { get: (name: string) => usage[name] };
  const known = Object.keys(usage).length > 0;
  return { ...spentOf(ad), ...spentInAllOf(ad), ...(known ? { resources: resourcesOf(ad) } : {}) };
}

function endingOf(end: NodeJobEnd): { readonly exitCode: number } | { readonly signal: number } {
  return 'code' in end ? { exitCode: end.code } : { signal: end.signal };
}
