/** The state of a node, with the numbers used in node status files (manual, "Current node status file"). */
export const STATUS = {
  notReady: 0,
  ready: 1,
  preRun: 2,
  submitted: 3,
  postRun: 4,
  done: 5,
  error: 6,
  futile: 7,
} as const;

export type Status = (typeof STATUS)[keyof typeof STATUS];

export const STATUS_NAMES = [
  'STATUS_NOT_READY',
  'STATUS_READY',
  'STATUS_PRERUN',
  'STATUS_SUBMITTED',
  'STATUS_POSTRUN',
  'STATUS_DONE',
  'STATUS_ERROR',
  'STATUS_FUTILE',
] as const;

/** The status of the whole DAG: `$DAG_STATUS` in scripts and `DagStatus` in metrics. */
export const DAG_STATUS = { ok: 0, error: 1, nodeFailed: 2, abort: 3, removed: 4, cycle: 5, halted: 6 } as const;

export type DagStatus = (typeof DAG_STATUS)[keyof typeof DAG_STATUS];

export const DAG_STATUS_NAMES = [
  'DAG_STATUS_OK',
  'DAG_STATUS_ERROR',
  'DAG_STATUS_NODE_FAILED',
  'DAG_STATUS_ABORT',
  'DAG_STATUS_RM',
  'DAG_STATUS_CYCLE',
  'DAG_STATUS_HALTED',
] as const;

/** Return values of a node whose job returned none (manual, `$RETURN`). */
export const NO_RETURN = { none: -1, submitFailed: -1001, jobAborted: -1002, jobSkipped: -1004 } as const;

/** The job id used for the job of a NOOP node and for a job that PRE_SKIP skipped. */
export const NOOP_ID = { cluster: 0, proc: 2_147_483_647 } as const;

/** `restart`: the DAG is to continue later. */
export const EXIT = { ok: 0, error: 1, abort: 2, restart: 3 } as const;
