import type { Ending, Report } from '../site/contract.ts';
import type { ExitRecord, Owner } from '../site/exit-record.ts';
import { GRAM_ERROR, gramMessage, STAGING_IN, STAGING_OUT } from './errors.ts';
import { STATE } from './protocol.ts';
import type { GramRecord } from './store.ts';

/** What is known of an attempt now; none of it needs to survive a restart. */
export interface GramSeen {
  /** The job's state according to GRAM; 0 if it has not been asked yet. */
  readonly state: number;
  /** Why the job failed: GRAM's error number. */
  readonly failure: number;
  /** What the site's adapter added to the error. */
  readonly adapter: string;
  /** The program was seen running. */
  readonly active: boolean;
  readonly owner: Owner | undefined;
  /** Present once the complete results are home. */
  readonly exit: ExitRecord | undefined;
  /** The job's own error message, from its standard error. */
  readonly message: string;
  /** The site no longer knows the job. */
  readonly gone: boolean;
  /** How often undelivered results have been requested again. */
  readonly retried: number;
  /** The job has been over long enough for its results to arrive. */
  readonly waited: boolean;
}

export const NOTHING_SEEN: GramSeen = {
  state: 0,
  failure: 0,
  adapter: '',
  active: false,
  owner: undefined,
  exit: undefined,
  message: '',
  gone: false,
  retried: 0,
  waited: false,
};

/**
 * What to do before more can be said. `revive`: start a job manager with a fresh credential; `deliver`: tell it to send
 * the results again; `wait`: they may be on their way; `give-up`: the job never started, so GRAM's record of it is
 * ended and it is submitted again.
 */
export type GramAction = 'revive' | 'deliver' | 'give-up' | 'wait';

export interface GramVerdict {
  /** `undefined`: the site does not know the attempt. */
  readonly report: Report | undefined;
  readonly action?: GramAction;
}

/** How gram-job.sh begins its message when it did not start the program. */
const NOT_BEGUN = 'gryphus:';
/** If the site fails to start a job more often than this, the site is at fault. */
const MOST_LOSSES = 3;
/** How often, at growing intervals, results are requested again before the job is given up: about an hour in all. */
const MOST_DELIVERIES = 60;

/** What GRAM's answers mean for an attempt. Pure and total. */
export function classify(record: Pick<GramRecord, 'key' | 'phase' | 'losses'>, seen: GramSeen): GramVerdict {
  const { key } = record;
  if (record.phase === 'lost') return { report: { key, is: 'lost', why: 'the site could not start it' } };
  if (seen.exit !== undefined && (isOver(seen.state) || seen.gone)) return { report: ended(key, seen.exit.ending) };
  if (seen.gone) return { report: undefined };
  if (record.phase === 'new' || record.phase === 'asked') return { report: { key, is: 'prepared' } };
  switch (seen.state) {
    case STATE.active:
    case STATE.stageOut:
      return { report: running(record, seen) };
    case STATE.suspended:
      return { report: { key, is: 'suspended' } };
    case STATE.pending:
    case STATE.unsubmitted:
    case STATE.stageIn:
    case 0:
      return { report: { key, is: 'queued' } };
    case STATE.done:
      return delivered(record, seen);
    case STATE.failed:
      return failed(record, seen);
    default:
      return { report: { key, is: 'unclear', message: `GRAM state ${seen.state}` } };
  }
}

export function isOver(state: number): boolean {
  return state === STATE.done || state === STATE.failed;
}

function running({ key }: Pick<GramRecord, 'key'>, { owner }: GramSeen): Report {
  return {
    key,
    is: 'running',
    ...(owner?.host === undefined ? {} : { host: owner.host }),
    ...(owner?.startedAt === undefined ? {} : { since: owner.startedAt }),
  };
}

/** GRAM has finished the job, but its results have not arrived. */
function delivered(record: Pick<GramRecord, 'key' | 'losses'>, seen: GramSeen): GramVerdict {
  if (seen.message.startsWith(NOT_BEGUN)) return notBegun(record, seen, seen.message);
  if (seen.state === STATE.failed && seen.retried < MOST_DELIVERIES) {
    return { report: running(record, seen), action: 'deliver' };
  }
  if (!seen.waited) return { report: running(record, seen), action: 'wait' };
  const message = STAGING_OUT.has(seen.failure)
    ? `its results could not be transferred to us: ${failureMessage(seen)}`
    : seen.message || 'it ended without an exit record';
  return { report: bySite(record, seen, 'vanished', message) };
}

/** Submits the job again unless that has already failed a few times. */
function notBegun(record: Pick<GramRecord, 'key' | 'losses'>, seen: GramSeen, message: string): GramVerdict {
  const { key, losses } = record;
  if (losses >= MOST_LOSSES) return { report: bySite(record, seen, 'cannot-start', message) };
  return {
    report: seen.active ? { key, is: 'unclear', message } : { key, is: 'queued', why: message },
    action: 'give-up',
  };
}

function failed(record: Pick<GramRecord, 'key' | 'losses'>, seen: GramSeen): GramVerdict {
  const { failure } = seen;
  const { key } = record;
  const message = failureMessage(seen);
  if (failure === GRAM_ERROR.managerStopped || failure === GRAM_ERROR.proxyExpired) {
    return { report: { key, is: 'unclear', message: `the job manager has stopped: ${message}` }, action: 'revive' };
  }
  if (STAGING_OUT.has(failure)) return delivered(record, seen);
  if (failure === 0 && !seen.waited) return { report: running(record, seen), action: 'wait' };
  if (failure === GRAM_ERROR.userCancelled) return { report: bySite(record, seen, 'cancelled', message) };
  if (seen.active)
    return { report: bySite(record, seen, 'vanished', failure === 0 ? 'the batch system ended it' : message) };
  const passing = STAGING_IN.has(failure) || failure === GRAM_ERROR.commitTimedOut;
  if (passing) return notBegun(record, seen, message);
  return { report: bySite(record, seen, 'cannot-start', failure === 0 ? 'the batch system ended it' : message) };
}

function failureMessage({ failure, adapter }: GramSeen): string {
  return adapter === '' ? gramMessage(failure) : `${gramMessage(failure)}: ${adapter}`;
}

type Cause = (Ending['how'] & { kind: 'by-site' })['cause'];

function bySite({ key }: Pick<GramRecord, 'key'>, { owner }: GramSeen, cause: Cause, message: string): Report {
  return ended(key, {
    how: { kind: 'by-site', cause, message },
    ...(owner?.host === undefined ? {} : { host: owner.host }),
    ...(owner?.startedAt === undefined ? {} : { startedAt: owner.startedAt }),
  });
}

function ended(key: GramRecord['key'], ending: Ending): Report {
  return { key, is: 'ended', ...ending };
}
