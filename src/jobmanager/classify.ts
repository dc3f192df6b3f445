import type { Backend, Verdict } from '../backends/contract.ts';
import type { Ending, Report, SiteCause } from '../site/contract.ts';
import { type ViewEntry, presentLine, type QueueLine } from './entry.ts';
import type { ExitRecord, Owner } from '../site/exit-record.ts';
import { sentence } from '../util/plain-text.ts';

/**
 * What to do before more can be said. `fence`: take the lock, so that the submission can never start. `look`: query the
 * queue soon. `account`: query the accounting. `list`: read the attempts' own records again. `prune`: remove copies
 * that must not run from the queue. `close`: take the lock of the next run, so that the site cannot run it once more.
 */
export type ViewAction = 'fence' | 'close' | 'look' | 'account' | 'list' | 'prune';

export interface Assessment {
  readonly report: Report;
  readonly action?: ViewAction;
  /** The assessment may change merely as time passes. */
  readonly restless?: boolean;
}

/** After this many submissions that ended before starting, the site is blamed. */
const MOST_LOST = 3;
/** When to query the accounting about a job that left the queue, in milliseconds after it was missed. */
const ACCOUNT_MS: readonly number[] = [0, 2000, 8000];
/** How long a site must say that it can never start a job before it is given up: its limits may change meanwhile. */
const NEVER_MS = 60_000;
/** How soon an exit record, which tells more than the queue's verdict, usually arrives. */
const RECORD_MS = 3000;

/**
 * What the site's information means for an attempt, given what is known at `now` and the queue's last good answer at
 * `lookedAt` (milliseconds). Pure and total.
 */
export function classify(entry: ViewEntry, backend: Backend, now: number, lookedAt: number): Assessment {
  const line = presentLine(entry);
  if (entry.recordLost) return recordLost(entry, line);
  if (entry.submission === 0) return { report: { key: entry.key, is: 'prepared' } };
  if (entry.exit !== undefined)
    return closing(entry, line, backend, classifyExit(entry, line, backend, now, lookedAt), now);
  if (entry.owner !== undefined)
    return closing(entry, line, backend, classifyStarted(entry, line, backend, now, lookedAt), now);
  return classifyUnstarted(entry, line, backend, now, lookedAt);
}

/** Before the end of what the site may run again is believed, it can run no more. What ended by itself it leaves alone. */
function closing(
  entry: ViewEntry,
  line: QueueLine | undefined,
  backend: Backend,
  found: Assessment,
  now: number,
): Assessment {
  const { exit, owner, closed } = entry;
  if (!backend.runsAgain || closed || found.report.is !== 'ended' || owner === undefined) return found;
  if (exit !== undefined && (!exit.disturbed || exit.ending.how.kind === 'by-site')) return found;
  // A run that was begun, and ended before it could say so, is an end, too.
  const live = line !== undefined && line.entry.is !== 'ended';
  if (entry.takenAt !== undefined && !live && now - entry.takenAt >= backend.patience.lag) return found;
  return { ...running(entry, line), action: 'close', restless: true };
}

/** The site ended its run, has it in its queue, and will run it again: the wrapper sees to it that the former run is over. */
function isBack(entry: ViewEntry, line: QueueLine | undefined, backend: Backend): line is QueueLine {
  if (!backend.runsAgain || entry.cancelled || entry.closed || isSecondOfSameJob(entry)) return false;
  return line?.entry.is === 'waiting' || (entry.backInQueue && line?.entry.is === 'running');
}

/** The program ended. If a signal was involved, the batch system may know who sent it. */
function classifyExit(
  entry: ViewEntry,
  line: QueueLine | undefined,
  backend: Backend,
  now: number,
  lookedAt: number,
): Assessment {
  const record = entry.exit;
  if (record === undefined) return unclear(entry, 'no exit record');
  if (!record.disturbed || record.ending.how.kind === 'by-site') return ended(entry, record.ending);
  if (isBack(entry, line, backend) && (entry.backInQueue || lookedAt > entry.exitSeenAt))
    return queued(entry, line, queueMessage(line));
  const again = entry.backInQueue || isSecondOfSameJob(entry);
  // An ordinary end in the queue is that of the second copy, or of a run that never began.
  if (line?.entry.is === 'ended' && !(again && line.entry.by === 'itself'))
    return ended(entry, line.entry.by === 'itself' ? unsaid(entry, record, backend) : blame(record.ending, line.entry));
  const requeue = line?.entry.is === 'waiting' || line?.entry.is === 'held' ? requeued(line) : undefined;
  if (requeue !== undefined && lookedAt > entry.exitSeenAt) {
    return { ...ended(entry, blame(record.ending, requeue)), action: 'prune' };
  }
  // It was queued again too briefly to be seen there.
  if (again) return ended(entry, blame(record.ending, STARTED_AGAIN));
  if (typeof entry.account === 'object') return ended(entry, blame(record.ending, entry.account));
  if (entry.ending !== undefined) return ended(entry, blame(record.ending, entry.ending));
  if (record.told && backend.told && !entry.cancelled) return ended(entry, blame(record.ending, backend.told));
  const { verdict, closing } = backend.patience;
  const waited = now - entry.exitSeenAt;
  const gone = line === undefined && lookedAt > entry.exitSeenAt;
  const asks = [0, verdict].filter((at) => at <= waited).length;
  if (gone && backend.accounts && entry.asked < asks && askable(entry))
    return { ...running(entry, line), action: 'account', restless: true };
  if (waited < (line?.entry.is === 'running' ? closing : verdict))
    return { ...running(entry, line), action: 'look', restless: true };
  return ended(entry, unsaid(entry, record, backend));
}

/** The ending where the batch system says nothing of who caused it. */
function unsaid(entry: ViewEntry, { told, ending }: ExitRecord, { silent }: Backend): Ending {
  const late = outOfTime(entry, ending);
  if (late !== undefined) return late;
  return told && silent && !entry.cancelled ? blame(ending, TOLD) : ending;
}
const TOLD: Verdict = { by: 'cancelled', message: 'it was told to end, and the batch system does not say why' };

/** Without a known sender, as when a server keeps no history, a signal at the time limit came from the batch system. */
function outOfTime({ limit }: ViewEntry, ending: Ending): Ending | undefined {
  const { startedAt, endedAt } = ending;
  if (limit === undefined || startedAt === undefined || endedAt === undefined || endedAt - startedAt < limit)
    return undefined;
  return blame(ending, { by: 'timeout', message: `it was killed when its ${limit} s were over` });
}

/** The lock is taken, so the program may have started and must not be started again. */
function classifyStarted(
  entry: ViewEntry,
  line: QueueLine | undefined,
  backend: Backend,
  now: number,
  lookedAt: number,
): Assessment {
  const { patience } = backend;
  if (isSecondOfSameJob(entry) && (line === undefined || line.entry.is === 'ended' || line.entry.is === 'waiting'))
    return bySite(entry, STARTED_AGAIN.by, STARTED_AGAIN.message);
  if (line === undefined) {
    // A batch system that kills at once leaves no record of a cancelled job, so waiting for one is pointless.
    const lag = entry.cancelled ? Math.min(RECORD_MS, patience.lag) : patience.lag;
    const missing = now - entry.missingSince;
    if (entry.looksWithout < 2) return { ...running(entry, line), action: 'look', restless: true };
    const known = typeof entry.account === 'object' && entry.account.by !== 'itself' ? entry.account : entry.ending;
    const ask = backend.accounts && typeof entry.account !== 'object' && askable(entry);
    if (ask && (missing >= lag ? entry.account === undefined : missing >= (ACCOUNT_MS[entry.asked] ?? lag))) {
      return { ...running(entry, line), action: 'account', restless: true };
    }
    if (missing < (known === undefined ? lag : Math.min(RECORD_MS, lag))) {
      return { ...running(entry, line), action: 'look', restless: true };
    }
    // The disk may have been too full for the event that announces the record.
    if (known === undefined && entry.readAt < entry.missingSince)
      return { ...running(entry, line), action: 'list', restless: true };
    const message = known?.message ?? 'it left the queue without an exit status';
    return bySite(entry, causeOf(known?.by ?? 'itself'), message);
  }
  const state = line.entry;
  switch (state.is) {
    case 'ended': {
      const itself = state.by === 'itself';
      if (now - line.since < (itself && !entry.cancelled ? patience.lag : RECORD_MS))
        return { ...running(entry, line), restless: true };
      if (itself && entry.readAt < line.since) return { ...running(entry, line), action: 'list', restless: true };
      const message = itself ? `the queue reports ${state.message}, and there is no exit status` : state.message;
      return bySite(entry, causeOf(state.by), message);
    }
    case 'waiting':
    case 'held':
      // The site requeued it after it had started: the first copy is dead.
      if (!entry.backInQueue && lookedAt - Math.max(line.since, entry.ownerSeenAt) < RECORD_MS) {
        return { ...running(entry, line), action: 'look', restless: true };
      }
      if (isBack(entry, line, backend)) return queued(entry, line, queueMessage(line));
      if (state.is === 'held' && state.by !== undefined)
        return { ...bySite(entry, state.by, state.message), action: 'prune' };
      return { ...bySite(entry, 'requeued', requeued(line).message), action: 'prune' };
    case 'suspended':
      return { report: { key: entry.key, is: 'suspended', batchId: line.batchId, why: state.message } };
    case 'unclear':
      return { report: { key: entry.key, is: 'unclear', batchId: line.batchId, message: state.message } };
    case 'running':
      return isBack(entry, line, backend) ? queued(entry, line) : running(entry, line);
  }
}

/** The lock is free, or taken by us. */
function classifyUnstarted(
  entry: ViewEntry,
  line: QueueLine | undefined,
  backend: Backend,
  now: number,
  lookedAt: number,
): Assessment {
  const { key, submission } = entry;
  const state = line?.entry;
  if (entry.fenced !== undefined) return fenced(entry, line);
  // A wrapper that asks exists, whatever the queue said earlier.
  const { asks } = entry;
  if (asks !== undefined && (state?.is === 'running' || entry.asksSeenAt >= lookedAt)) return asking(entry, line, asks);
  if (state === undefined) {
    const sure = entry.looksWithout >= 2 && now - entry.missingSince >= backend.patience.lost;
    const refusal = entry.refused && backend.refusalOf(entry.refused.status, entry.refused.message);
    if (sure || (refusal !== undefined && refusal !== 'unclear')) return { ...queued(entry, line), action: 'fence' };
    return { ...queued(entry, line), action: 'look', restless: true };
  }
  const batchId = line?.batchId ?? '';
  switch (state.is) {
    case 'waiting':
      return queued(entry, line, state.message);
    case 'held': {
      const report = { key, is: 'held-by-site', batchId, why: state.message } as const;
      if (!state.never) return { report };
      return now - (line?.since ?? now) < NEVER_MS ? { report, restless: true } : { report, action: 'fence' };
    }
    case 'suspended':
      return { report: { key, is: 'suspended', batchId, why: state.message } };
    case 'running':
      return running(entry, line);
    case 'unclear':
      return { report: { key, is: 'unclear', batchId, message: state.message } };
    case 'ended': {
      // News of its lock may still be on the way.
      const early = now - (line?.since ?? now) < Math.min(RECORD_MS, backend.patience.lag);
      if (early) return { ...queued(entry, line), restless: true };
      return submission >= 1 ? { ...queued(entry, line), action: 'fence' } : queued(entry, line);
    }
  }
}

/** Nothing of the present submission can start any more; decides whether the site wanted that. */
function fenced(entry: ViewEntry, line: QueueLine | undefined): Assessment {
  if (entry.cancelled) return bySite(entry, 'cancelled', 'it was cancelled before it started');
  const state = line?.entry;
  if (state?.is === 'held' && state.never) return { ...bySite(entry, 'unsatisfiable', state.message), action: 'prune' };
  const action = state !== undefined && state.is !== 'ended' ? ({ action: 'prune' } as const) : {};
  if (state?.is === 'ended' && WANTED.has(state.by)) return bySite(entry, state.by as SiteCause, state.message);
  if (entry.submission >= MOST_LOST && state?.is === 'ended') {
    const message = `submitted ${entry.submission} times, it never started: ${state.message}`;
    return bySite(entry, state.by === 'itself' ? 'cannot-start' : state.by, message);
  }
  const refused = entry.refused && sentence(entry.refused.message);
  const why = refused ?? (state?.is === 'ended' ? state.message : 'the batch system does not have it');
  return { report: { key: entry.key, is: 'lost', why }, ...action };
}
const WANTED: ReadonlySet<string> = new Set(['cancelled', 'deadline', 'timeout', 'out-of-memory']);

/** A second copy with the same batch id found the lock: the site restarted the job, so its first run is over. */
function isSecondOfSameJob(entry: ViewEntry): boolean {
  const id = entry.second?.batchId;
  return id !== undefined && id === entry.owner?.batchId;
}
const STARTED_AGAIN: Verdict & { readonly by: SiteCause } = {
  by: 'requeued',
  message: 'the site ended it and put it back into its queue; it was not started again',
};

function queueMessage({ entry }: QueueLine): string {
  return 'message' in entry ? entry.message : '';
}

function requeued(line: QueueLine): Verdict {
  const message = queueMessage(line);
  if (line.entry.is === 'held' && line.entry.by !== undefined) return { by: line.entry.by, message };
  return { by: 'requeued', message };
}

/** Without a record, an ordinary end has an unknown cause. */
function causeOf(by: Verdict['by']): SiteCause {
  return by === 'itself' ? 'vanished' : by;
}

/** The recorded ending, with the site's cause if it had one. */
function blame(ending: Ending, verdict: Verdict): Ending {
  if (verdict.by === 'itself' || verdict.by === 'vanished' || ending.how.kind === 'by-site') return ending;
  const how = ending.how;
  const status = how.kind === 'exited' ? `exit status ${how.code}` : `signal ${how.signal}`;
  return { ...ending, how: { kind: 'by-site', cause: verdict.by, message: verdict.message }, message: status };
}

function ended(entry: ViewEntry, ending: Ending): Assessment {
  return { report: { key: entry.key, is: 'ended', ...ending, ...runOf(entry) } };
}

function bySite(entry: ViewEntry, cause: SiteCause, message: string): Assessment {
  const { owner } = entry;
  return ended(entry, {
    how: { kind: 'by-site', cause, message },
    ...(owner?.host === undefined ? {} : { host: owner.host }),
    ...(owner?.startedAt === undefined ? {} : { startedAt: owner.startedAt }),
  });
}

function running(entry: ViewEntry, line: QueueLine | undefined): { report: Report } {
  const batchId = line?.batchId ?? entry.batchId;
  const host = entry.owner?.host ?? (line?.entry.is === 'running' ? line.entry.host : undefined);
  const since = entry.owner?.startedAt;
  const known = {
    ...(batchId && { batchId }),
    ...(host && { host }),
    ...(since === undefined ? {} : { since }),
    ...runOf(entry),
  };
  return { report: { key: entry.key, is: 'running', ...known } };
}

function runOf({ owner }: ViewEntry): { run?: number } {
  return owner !== undefined && owner.run > 0 ? { run: owner.run } : {};
}

function asking(entry: ViewEntry, line: QueueLine | undefined, { host }: Owner): { report: Report } {
  const batchId = line?.batchId ?? entry.batchId;
  return { report: { key: entry.key, is: 'asking', ...(batchId && { batchId }), ...(host && { host }) } };
}

function queued(entry: ViewEntry, line: QueueLine | undefined, why?: string): { report: Report } {
  const batchId = line?.batchId ?? entry.batchId;
  return { report: { key: entry.key, is: 'queued', ...(batchId && { batchId }), ...(why && { why }) } };
}

function unclear(entry: ViewEntry, message: string): Assessment {
  return { report: { key: entry.key, is: 'unclear', message } };
}

/** Whether it runs, and how it ends, only its directory could tell. */
function recordLost(entry: ViewEntry, line: QueueLine | undefined): Assessment {
  const there =
    line === undefined ? 'it is leaving the queue' : `the queue has it as ${line.batchId}, ${line.entry.is}`;
  const message = `its directory there is gone: deleted, or on a file system that is not mounted; ${there}`;
  const batchId = line?.batchId ?? entry.batchId;
  const report: Report = { key: entry.key, is: 'unclear', ...(batchId && { batchId }), message };
  return line === undefined ? { report, action: 'look', restless: true } : { report };
}

function askable(entry: ViewEntry): boolean {
  return (entry.owner?.batchId ?? entry.batchId) !== undefined;
}
