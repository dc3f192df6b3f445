import type { QueueEntry, Verdict } from './contract.ts';

/** Slurm's job states (squeue(1), JOB STATE CODES) that are not an end. */
const LIVE: Readonly<Record<string, 'waiting' | 'running' | 'suspended' | 'held'>> = {
  PENDING: 'waiting',
  CONFIGURING: 'waiting',
  REQUEUED: 'waiting',
  REQUEUE_FED: 'waiting',
  RESV_DEL_HOLD: 'held',
  REQUEUE_HOLD: 'held',
  SPECIAL_EXIT: 'held',
  RUNNING: 'running',
  COMPLETING: 'running',
  SIGNALING: 'running',
  STAGE_OUT: 'running',
  RESIZING: 'running',
  SUSPENDED: 'suspended',
  STOPPED: 'suspended',
};

const ENDED: Readonly<Record<string, Verdict['by']>> = {
  COMPLETED: 'itself',
  FAILED: 'itself',
  TIMEOUT: 'timeout',
  NODE_FAIL: 'node-fail',
  PREEMPTED: 'preempted',
  OUT_OF_MEMORY: 'out-of-memory',
  CANCELLED: 'cancelled',
  REVOKED: 'cancelled',
  BOOT_FAIL: 'boot-fail',
  DEADLINE: 'deadline',
};

/** Reasons for which a job waits until a person acts; some have blanks (22.05), others underscores. */
const HELD =
  /^(JobHeldUser|JobHeldAdmin|JobHoldMaxRequeue|launch[ _]failed[ _]requeued[ _]held|job[ _]requeued[ _]in[ _]held[ _]state)$/;
/** The job by itself exceeds a limit, so it can never start, but Slurm keeps it waiting. */
const NEVER =
  /^(BadConstraints|DependencyNeverSatisfied|PartitionTimeLimit|PartitionNodeLimit|PartitionConfig|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed|(QOS|Assoc)Max\w*PerJob(Limit)?|Job's (account|QOS) not permitted to use this partition .*)$/;

export function slurmEntry(state: string, reason: string, nodes: string): QueueEntry {
  const live = LIVE[state];
  const message = reason === '' || reason === 'None' ? state : reason;
  if (live === 'running') return nodes === '' ? { is: 'running' } : { is: 'running', host: nodes };
  if (live === 'waiting' && NEVER.test(reason)) return { is: 'held', message, never: true };
  if (live === 'waiting') return { is: HELD.test(reason) ? 'held' : 'waiting', message };
  if (live !== undefined) return { is: live, message };
  const by = ENDED[state];
  if (by === undefined) return { is: 'unclear', message: `${state} ${reason}`.trim() };
  return { is: 'ended', by, message: message === state ? state : `${state} (${reason})` };
}

/** Reads the accounting's state, such as `CANCELLED by 1001`; undefined if the job has not ended. */
export function slurmVerdict(text: string): Verdict | undefined {
  const by = ENDED[text.split(' ')[0] ?? ''];
  return by === undefined ? undefined : { by, message: text };
}
