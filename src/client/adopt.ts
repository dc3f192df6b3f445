import { holdAttributes, released } from '../job/hold.ts';
import { GryphusError } from '../errors.ts';
import { type AttemptId, formatJobId } from '../job/ids.ts';
import { LIFE } from '../job/life.ts';
import { readNumber } from '../job/values.ts';
import type { AuditRecord } from '../site/audit.ts';
import type { HistoryRecord, JobRecord, Queue } from '../queue/api.ts';

/** What is known about an attempt that a site holds. */
export interface Orphan {
  readonly attempt: AttemptId;
  /** The site's record of it; `undefined`: its batch system has it, but its directory is gone. */
  readonly there: AuditRecord | undefined;
  /** Its job, if that is in the queue. */
  readonly job: JobRecord | undefined;
  /** Its job as it left the queue, if it did. */
  readonly past: HistoryRecord | undefined;
}

/** Why the job cannot take this attempt over; `undefined` if it can. */
export function unadoptable({ attempt, there, job, past }: Orphan): string | undefined {
  if (there === undefined) return 'its directory there is gone, so its results cannot be brought home';
  if (there.state === 'prepared') return 'it was never meant to run there';
  if (there.state === 'cancelled' || there.state === 'fenced') return 'it will not run there any more';
  if (job) {
    if (job.state !== 'idle' && job.state !== 'held') {
      return LIFE[job.state].does === 'nothing'
        ? `the job is ${job.state} here`
        : `the job is being handled in attempt ${job.attempt}`;
    }
    return job.attempt > attempt.attempt ? `the job was sent to a site again, in attempt ${job.attempt}` : undefined;
  }
  if (!past) return 'the job is neither in the queue nor in the history';
  if (past.state === 'completed') return 'the job has completed';
  const last = readNumber(past.attrs, 'GryphusAttempt') ?? 0;
  return last > attempt.attempt ? `the job was sent to a site again, in attempt ${last}` : undefined;
}

/** The attributes of a hold, a removal or an earlier end, which the attempt will set anew. */
const SAID = ['HoldReason', 'HoldReasonCode', 'HoldReasonSubCode', 'RemoveReason'];

/**
 * Gives the attempt back to its job: a removed job returns to the queue under its id. If interrupted halfway, the job
 * is in the queue, held, and can be adopted again. Throws 'not-permitted' or 'conflict' if it cannot be adopted.
 */
export async function adopt(queue: Queue, orphan: Orphan, manager: string, site: string): Promise<void> {
  const { attempt, job, past } = orphan;
  const why = unadoptable(orphan);
  const id = { cluster: attempt.cluster, proc: attempt.proc };
  const refused = (message: string) => new GryphusError('not-permitted', `The attempt cannot be adopted: ${message}.`);
  if (why !== undefined) throw refused(why);
  if (!job && past) {
    const { LeaveJobInQueue, ...ad } = past.attrs.toRecord();
    for (const name of SAID) delete ad[name];
    const stays = LeaveJobInQueue === undefined || LeaveJobInQueue === 'false' ? {} : { LeaveJobInQueue };
    const hold = holdAttributes(`Taken out of the history; its attempt at ${site} is being adopted.`, 1);
    await queue.restore({ id, attrs: { ...ad, ...stays, ...hold }, attempt: attempt.attempt, manager, site });
  }
  const [now] = await queue.get([id]);
  if (!now) throw refused(`job ${formatJobId(id)} has left the queue`);
  const answer = await queue.transition({
    id,
    event: 'adopted',
    adopt: attempt.attempt,
    route: { manager, site },
    set: now.state === 'held' ? released(now) : {},
  });
  if (!answer.ok) throw new GryphusError('conflict', `The attempt cannot be adopted: ${answer.message}`);
}
