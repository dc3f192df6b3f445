/**
 * Where the crash suite stops the site's half: the file `crash-point` in the agent's directory at the site names one,
 * or `name:count`. Each stands in a shell file as `crash_point NAME`; a test holds the two lists together.
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

export type SiteCrashPoint = (typeof SITE_CRASH_POINTS)[number];
