/**
 * The life of a job. The state, not the arrow, carries the work: after a crash there is no arrow to remember, so
 * recovery is "read the state, do its work again" (all work is idempotent by the attempt's key).
 */
export type Work = 'nothing' | 'prepare' | 'commit' | 'watch' | 'fetch' | 'decide' | 'forget' | 'cancel';

/** What moves a job from one state to the next. */
export type LifeEvent =
  | 'take' // the GridManager gives the job to a site, under a new attempt
  | 'granted' // a candidate (candidate-life.ts) was the first to ask for leave to start and becomes the job's attempt
  | 'prepared' // the site has the attempt's record and its files
  | 'committed' // the site has promised to run it once
  | 'queued' // the site's batch system has it, but it has not started
  | 'started'
  | 'suspended'
  | 'silent' // the site does not answer
  | 'lost' // the site lost it before its run.lock was taken: safe to submit again
  | 'ended' // the program ended, or the site ended it
  | 'refused' // will always fail: hold
  | 'fetched' // the results are home
  | 'keep' // the results cannot be stored at home now: hold the job, and let the site keep them
  | 'complete'
  | 'again' // policy asks for another attempt
  | 'stop' // a policy, or the site that ended it, asks for a hold once the results are home
  | 'forgotten' // the site keeps nothing of the attempt
  | 'withdrawn' // the site has confirmed that the attempt will not run
  | 'takeback' // the agent wants it elsewhere, before it has run
  | 'adopted' // by the user's decision, an attempt still at the site belongs to the job again
  | 'hold'
  | 'release'
  | 'remove';

/** A job's state, finer than HTCondor's JobStatus; `LIFE` has what each shows as. */
export type State =
  | 'idle'
  | 'preparing'
  | 'prepared'
  | 'committed'
  | 'running'
  | 'suspended'
  | 'unknown'
  | 'unknown-running'
  | 'finished'
  | 'fetched'
  | 'completing'
  | 'requeueing'
  | 'stopping'
  | 'holding'
  | 'removing'
  | 'restarting'
  | 'withdrawing'
  | 'held'
  | 'kept'
  | 'completed'
  | 'removed';

/** HTCondor's JobStatus. */
export const JOB_STATUS = {
  idle: 1,
  running: 2,
  removed: 3,
  completed: 4,
  held: 5,
  transferring: 6,
  suspended: 7,
} as const;

export interface StateRow {
  readonly does: Work;
  /** The HTCondor JobStatus shown in this state. */
  readonly shows: keyof typeof JOB_STATUS;
  readonly on: Readonly<Partial<Record<LifeEvent, State>>>;
}

const atTheSite = {
  queued: 'committed',
  started: 'running',
  suspended: 'suspended',
  silent: 'unknown',
  ended: 'finished',
  lost: 'preparing',
  refused: 'stopping',
  hold: 'holding',
  remove: 'removing',
  takeback: 'withdrawing',
} as const satisfies Partial<Record<LifeEvent, State>>;

/**
 * The table of the life of a job (docs/life-of-a-job.md): for each state its work, what it shows as, and where events
 * lead.
 */
export const LIFE: Readonly<Record<State, StateRow>> = {
  idle: {
    does: 'nothing',
    shows: 'idle',
    on: {
      take: 'preparing',
      granted: 'committed',
      adopted: 'committed',
      hold: 'held',
      remove: 'removed',
      refused: 'held',
    },
  },
  preparing: {
    does: 'prepare',
    shows: 'idle',
    on: {
      prepared: 'prepared',
      committed: 'committed',
      refused: 'stopping',
      hold: 'holding',
      remove: 'removing',
      takeback: 'withdrawing',
    },
  },
  prepared: {
    does: 'commit',
    shows: 'idle',
    on: {
      committed: 'committed',
      lost: 'preparing',
      refused: 'stopping',
      hold: 'holding',
      remove: 'removing',
      takeback: 'withdrawing',
    },
  },
  committed: { does: 'watch', shows: 'idle', on: atTheSite },
  running: { does: 'watch', shows: 'running', on: { ...atTheSite, silent: 'unknown-running' } },
  suspended: { does: 'watch', shows: 'suspended', on: { ...atTheSite, silent: 'unknown-running' } },
  /** The site does not answer; by its last answer, the job had not started. */
  unknown: { does: 'watch', shows: 'idle', on: atTheSite },
  /** The site does not answer; by its last answer, the job had started. */
  'unknown-running': { does: 'watch', shows: 'running', on: { ...atTheSite, silent: 'unknown-running' } },
  finished: {
    does: 'fetch',
    shows: 'transferring',
    on: { fetched: 'fetched', keep: 'kept', hold: 'kept', lost: 'stopping', remove: 'removing' },
  },
  fetched: {
    does: 'decide',
    shows: 'transferring',
    on: { complete: 'completing', again: 'requeueing', stop: 'stopping', remove: 'removing' },
  },
  completing: { does: 'forget', shows: 'completed', on: { forgotten: 'completed' } },
  requeueing: { does: 'forget', shows: 'idle', on: { forgotten: 'idle', hold: 'stopping', remove: 'removing' } },
  stopping: { does: 'forget', shows: 'held', on: { forgotten: 'held', release: 'requeueing', remove: 'removing' } },
  holding: { does: 'cancel', shows: 'held', on: { withdrawn: 'held', release: 'restarting', remove: 'removing' } },
  removing: { does: 'cancel', shows: 'removed', on: { withdrawn: 'removed' } },
  restarting: { does: 'cancel', shows: 'idle', on: { withdrawn: 'idle', hold: 'holding', remove: 'removing' } },
  withdrawing: {
    does: 'cancel',
    shows: 'idle',
    on: { withdrawn: 'idle', ended: 'finished', started: 'running', hold: 'holding', remove: 'removing' },
  },
  held: { does: 'nothing', shows: 'held', on: { release: 'idle', adopted: 'committed', remove: 'removed' } },
  /** Held with the results still at the site; a release fetches them again without rerunning the program. */
  kept: { does: 'nothing', shows: 'held', on: { release: 'finished', remove: 'removing' } },
  completed: { does: 'nothing', shows: 'completed', on: {} },
  removed: { does: 'nothing', shows: 'removed', on: {} },
};

export const STATES = Object.keys(LIFE) as readonly State[];

/** The state to which `event` leads; `undefined` if it means nothing in this state (a late or repeated message). */
export function next(state: State, event: LifeEvent): State | undefined {
  return LIFE[state].on[event];
}

/** Whether a job in this state has ended for good. */
export function isEnd(state: State): boolean {
  return Object.keys(LIFE[state].on).length === 0;
}
