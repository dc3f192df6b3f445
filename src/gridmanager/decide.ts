import { remedyOf } from '../backends/remedies.ts';
import { POOL_SITE } from '../config/sites.ts';
import type { LifeEvent } from '../job/life.ts';
import { USAGE_ATTRIBUTES } from '../job/log-usage.ts';
import { oneMorePreemption } from '../job/preemptions.ts';
import { quoted, readNumber, readString, truthOf } from '../job/values.ts';
import type { JobRecord } from '../queue/api.ts';
import type { SiteCause } from '../site/contract.ts';
import { isCheckpoint } from './files.ts';
import { holdAttributes, POLICY_UNDEFINED, policyHold } from '../job/hold.ts';
import { asksForOther, changesOnEvict, OUT_OF_MEMORY, type Vacated } from './on-evict.ts';
import { SITE_CAUSES } from '../site/causes.ts';

export interface Decision {
  readonly event: Extract<LifeEvent, 'complete' | 'again' | 'stop'>;
  readonly set: Record<string, string | null>;
  readonly info?: Readonly<Record<string, string>>;
}

/**
 * Decides what happens to a job whose program has ended and whose results have been transferred, by the job's own
 * policy and in HTCondor's order (manual, "Automatic holding and removing"): a missing output holds the job; OnExitHold
 * holds it; OnExitRemove completes it or, when false, runs it again. A job ended by its site never counts as completed:
 * it runs again within JobMaxRetries, or else is held. `now`: Unix seconds.
 */
export function decide(job: JobRecord, now: number): Decision {
  const cause = readString(job.attrs, 'GryphusSiteCause') as SiteCause | undefined;
  if (cause !== undefined && cause in SITE_CAUSES) return bySite(job, cause, now);
  const completions = (readNumber(job.attrs, 'NumJobCompletions') ?? 0) + 1;
  const done = { NumJobCompletions: String(completions), JobCurrentFinishTransferOutputDate: String(now) };
  if (job.attrs.has('GryphusMissingOutput')) return { event: 'stop', set: { ...done, GryphusMissingOutput: null } };
  if (isCheckpoint(job.attrs)) return { event: 'again', set: checkpointed(job, now), info: { by: 'checkpoint' } };
  const hold = truthOf(job.attrs, 'OnExitHold', done);
  if (hold === true) {
    return { event: 'stop', set: { ...done, ...policyHold(job, 'OnExitHold') } };
  }
  const remove = job.attrs.has('OnExitRemove') ? truthOf(job.attrs, 'OnExitRemove', done) : true;
  if (remove === true)
    return {
      event: 'complete',
      set: { ...done, CompletionDate: String(now), JobFinishedHookDone: null },
      info: exitOf(job),
    };
  if (remove === false) {
    return {
      event: 'again',
      set: done,
      info: {
        reason: `The job attribute OnExitRemove expression '${job.attrs.get('OnExitRemove')}' evaluated to FALSE`,
      },
    };
  }
  const reason = `The job attribute OnExitRemove expression '${job.attrs.get('OnExitRemove')}' evaluated to UNDEFINED`;
  return { event: 'stop', set: { ...done, ...holdAttributes(reason, POLICY_UNDEFINED) } };
}

/** Counts a checkpoint: the work done so far is saved. */
function checkpointed({ attrs }: JobRecord, now: number): Record<string, string> {
  return { NumCkpts: String((readNumber(attrs, 'NumCkpts') ?? 0) + 1), LastCkptTime: String(now) };
}

/**
 * How the job ended, for listeners that see the event when the job may have left the queue. A DAG's manager, which
 * writes a log of its nodes' jobs, also needs the resource usage.
 */
function exitOf({ attrs }: JobRecord): Record<string, string> {
  const names = ['ExitCode', 'ExitSignal', ...(attrs.has('DAGManJobId') ? USAGE_ATTRIBUTES : [])];
  const known = names.map((name) => [name, attrs.get(name)] as const);
  return Object.fromEntries(known.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])));
}

function bySite(job: JobRecord, cause: SiteCause, now: number): Decision {
  const retries = readNumber(job.attrs, 'JobMaxRetries');
  const starts = readNumber(job.attrs, 'NumJobStarts') ?? 0;
  const message = readString(job.attrs, 'GryphusSiteWords') ?? '';
  const { says, remedy, hold, inVain } = SITE_CAUSES[cause];
  // Users of the pool accept that jobs move: an evicted job runs again, as in HTCondor's vanilla universe.
  const vacated: Vacated = cause === 'out-of-memory' ? OUT_OF_MEMORY : {};
  const changes = changesOnEvict(job.attrs, vacated);
  if (cause === 'out-of-memory' && asksForOther(changes)) {
    const more = Object.entries(changes).filter(([name]) => /^request/i.test(name));
    const asks = more.map(([name, text]) => `${name} = ${text ?? 'undefined'}`).join(', ');
    const reason = `${says}${message === '' ? '' : ` (${message})`}. It will run again with ${asks}.`;
    return { event: 'again', set: { ...changes, GryphusSiteCause: null }, info: { by: 'eviction', reason } };
  }
  const moves = job.site === POOL_SITE.name && (cause === 'preempted' || cause === 'node-fail');
  if (moves) {
    const reason = message === '' ? says : message;
    const by = cause === 'node-fail' ? 'lost' : (readString(job.attrs, 'GryphusPreemptedBy') ?? 'policy');
    const set = { ...changes, GryphusSiteCause: null, GryphusPreemptedBy: null, ...oneMorePreemption(job.attrs, by) };
    if (!job.attrs.has('GryphusSaved')) return { event: 'again', set, info: { by: 'eviction', reason } };
    return {
      event: 'again',
      set: { ...set, ...checkpointed(job, now) },
      info: { by: 'eviction', reason, checkpointed: 'true' },
    };
  }
  if (retries !== undefined && starts <= retries && !inVain) {
    return { event: 'again', set: { GryphusSiteCause: null }, info: { reason: `${says} (${message})` } };
  }
  const known = inVain ? remedyOf(message) : undefined;
  const todo = known === undefined ? remedy : `${known}.`;
  const reason = `${says}${message === '' || message === says ? '' : ` (${message})`}. ${todo}`;
  return { event: 'stop', set: { ...holdAttributes(reason, hold, vacated.subCode), GryphusSiteCause: quoted(cause) } };
}
