/**
 * Where the crash suite kills the site's half: the file `crash-point` in the agent's directory at the site names a
 * point, or `name:count`. Each appears in a shell file as `crash_point NAME`; a test keeps the two lists in step.
 */
export const SITE_CRASH_POINTS = [
  'jm.prepare-staged',
  'jm.prepare-moved',
  'jm.commit-intended',
  'jm.submit-before',
  'jm.submit-after',
  'jm.submit-saved',
  'jm.commit-submitted',
  'jm.leave-before',
  'jm.leave-written',
  'jm.cancel-locked',
  'jm.cancel-sent',
  'jm.forget-moved',
  'jm.forget-deleted',
] as const;

/** Crash points of a job with an X.509 proxy. */
export const DELEGATION_CRASH_POINTS = ['jm.csr-made', 'jm.proxy-in-place'] as const;

/** Crash points of a job that asks its home. */
export const ASKING_CRASH_POINTS = ['jm.answer-written'] as const;

export type SiteCrashPoint =
  | (typeof SITE_CRASH_POINTS)[number]
  | (typeof DELEGATION_CRASH_POINTS)[number]
  | (typeof ASKING_CRASH_POINTS)[number];
