import { isNoop, KIND } from '../language/graph.ts';
import type { ScriptSpec, ScriptType } from '../language/commands.ts';
import { type Core, doneCount, type JobSet, MARK, marked, nodeCount, nodeName, type ScriptQueue } from './core.ts';
import { NO_RETURN, NOOP_ID } from './status.ts';

/** Queues a node's script, which runs as soon as the throttle allows it. */
export function queueScript(core: Core, node: number, type: ScriptType): void {
  core.scripts[type].waiting.push(node);
}

/** Takes the next script that may run now. While the DAG is halted, the only PRE script allowed is the final node's. */
export function nextScript(core: Core, type: ScriptType): number | undefined {
  const queue = core.scripts[type];
  const limit = limitOf(core, type);
  if (limit > 0 && queue.running >= limit) {
    core.deferrals[type] += queue.waiting.length > queue.head ? 1 : 0;
    return undefined;
  }
  if (core.halted && type === 'PRE') return takeFinal(core, queue);
  const node = queue.waiting[queue.head];
  if (node === undefined) return undefined;
  queue.head++;
  if (queue.head > 1024 && queue.head * 2 > queue.waiting.length) {
    queue.waiting = queue.waiting.slice(queue.head);
    queue.head = 0;
  }
  return node;
}

/** Drops all PRE scripts that have not started and returns their nodes. */
export function dropWaitingPre(core: Core): readonly number[] {
  const queue = core.scripts.PRE;
  const nodes = [...queue.waiting.slice(queue.head), ...queue.deferred.map((d) => d.node)];
  queue.waiting = [];
  queue.head = 0;
  queue.deferred.length = 0;
  core.counts.pre -= nodes.length;
  return nodes;
}

function takeFinal(core: Core, queue: ScriptQueue): number | undefined {
  const at = queue.waiting.findIndex((node, i) => i >= queue.head && core.dag.kind[node] === KIND.final);
  return at < 0 ? undefined : queue.waiting.splice(at, 1)[0];
}

function limitOf(core: Core, type: ScriptType): number {
  switch (type) {
    case 'PRE':
      return core.limits.maxPre;
    case 'POST':
      return core.limits.maxPost;
    case 'HOLD':
      return core.limits.maxHold;
  }
}

/** Puts deferred scripts whose time has come back in line. Returns the time of the next one, if any. */
export function wakeDeferred(core: Core): number | undefined {
  let next: number | undefined;
  for (const queue of Object.values(core.scripts)) {
    if (queue.deferred.length === 0) continue;
    const later = queue.deferred.filter((d) => d.at > core.now);
    for (const { node, at } of queue.deferred) if (at <= core.now) queue.waiting.push(node);
    queue.deferred.splice(0, queue.deferred.length, ...later);
    for (const { at } of later) next = Math.min(next ?? at, at);
  }
  return next;
}

export interface Argv {
  readonly argv: readonly string[];
  /** Words that begin with `$` but are not macros here; `notInPre`: they are valid after the job has run. */
  readonly unknown: readonly { readonly word: string; readonly notInPre: boolean }[];
}

/**
 * The words of a script's command line. A macro must be a whole word, in any case; quotes have no meaning (manual, "DAG
 * node script macros").
 */
export function scriptArgv(core: Core, node: number, type: ScriptType, script: ScriptSpec): Argv {
  const unknown: Argv['unknown'][number][] = [];
  const argv = script.command.split(/[ \t]+/).map((word) => {
    if (!word.startsWith('$')) return word;
    const macro = word.slice(1).toUpperCase();
    const anywhere = dagMacro(core, node, macro);
    if (anywhere !== undefined) return anywhere;
    const afterJob = jobMacro(core, node, macro);
    if (afterJob !== undefined && type !== 'PRE') return afterJob;
    unknown.push({ word, notInPre: afterJob !== undefined });
    return word;
  });
  return { argv: argv.filter((word, i) => i > 0 || word !== ''), unknown };
}

function dagMacro(core: Core, node: number, macro: string): string | undefined {
  switch (macro) {
    case 'NODE':
    case 'JOB':
      return nodeName(core, node);
    case 'RETRY':
      return String(core.retries[node]);
    case 'MAX_RETRIES':
      return String(core.retryMax[node]);
    case 'DAG_STATUS':
      return String(core.dagStatus);
    case 'FAILED_COUNT':
      return String(core.counts.failed);
    case 'FUTILE_COUNT':
      return String(core.counts.futile);
    case 'DONE_COUNT':
      return String(doneCount(core, true));
    case 'QUEUED_COUNT':
      return String(core.counts.submitted);
    case 'NODE_COUNT':
      return String(nodeCount(core, true));
    case 'DAGID':
      return String(core.dagmanId);
    default:
      return undefined;
  }
}

function jobMacro(core: Core, node: number, macro: string): string | undefined {
  const jobs = core.jobs.get(node);
  const noop = isNoop(core.dag, node);
  const codes = noop ? [0] : (jobs?.exit ?? []);
  switch (macro) {
    case 'JOBID':
      // Of a node's jobs, DAGMan remembers the last one submitted.
      return jobs === undefined || noop ? jobIdOf(core, node) : `${jobs.cluster}.${jobs.procs - 1}`;
    case 'CLUSTERID':
      return String(noop ? NOOP_ID.cluster : (jobs?.cluster ?? -1));
    case 'JOB_COUNT':
      return String(jobs?.procs ?? 0);
    case 'SUCCESS':
      return marked(core, node, MARK.unsuccessful) ? 'False' : 'True';
    case 'RETURN':
      return String(core.postReturn.get(node) ?? NO_RETURN.none);
    case 'EXIT_CODES':
      return exitCodes(codes)
        .map(([code]) => code)
        .join(',');
    case 'EXIT_CODE_COUNTS':
      return exitCodes(codes)
        .map(([code, count]) => `${code}:${count}`)
        .join(',');
    case 'EXIT_CODE_LIST':
      return exitCodeList(codes);
    case 'PRE_SCRIPT_RETURN':
      return String(core.preReturn.get(node) ?? NO_RETURN.none);
    case 'JOB_ABORT_COUNT':
      return String(codes.filter((code) => code === undefined).length);
    default:
      return undefined;
  }
}

/** The exit codes of all jobs in order; a removed job leaves an empty field once any job has a code. */
function exitCodeList(codes: JobSet['exit']): string {
  return codes.reduce<string>((list, code) => `${list}${list === '' ? '' : ','}${code ?? ''}`, '');
}

/** Each distinct exit code in ascending order, with the number of jobs that had it. */
function exitCodes(codes: JobSet['exit']): readonly (readonly [number, number])[] {
  const counts = new Map<number, number>();
  for (const code of codes) if (code !== undefined) counts.set(code, (counts.get(code) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a - b);
}

/** The `cluster.proc` of a node's first job. */
export function jobIdOf(core: Core, node: number): string {
  if (isNoop(core.dag, node)) return `${NOOP_ID.cluster}.${NOOP_ID.proc}`;
  const jobs = core.jobs.get(node);
  return jobs === undefined ? '-1.-1' : `${jobs.cluster}.0`;
}
