/** `ClusterId.ProcId`, counted as in HTCondor: clusters from 1, procs from 0. */
export interface JobId {
  readonly cluster: number;
  readonly proc: number;
}

/**
 * The name of one attempt, unique forever: `<agent id>.<cluster>.<proc>.<attempt>` (docs/ARCHITECTURE.md, invariant 3).
 */
export type AttemptKey = `${string}.${number}.${number}.${number}`;

export interface AttemptId extends JobId {
  readonly agent: string;
  /** Counts from 1 and grows by one whenever the user or a policy asks for the program to be started again. */
  readonly attempt: number;
}

const JOB_ID = /^(\d{1,15})\.(\d{1,15})$/;
const KEY = /^([A-Za-z0-9_-]{1,64})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/;

/** A job's id as text: `12.3`. */
export function formatJobId(id: JobId): string {
  return `${id.cluster}.${id.proc}`;
}

/** `undefined` if the text is not `cluster.proc`. */
export function parseJobId(text: string): JobId | undefined {
  const found = JOB_ID.exec(text);
  return found ? { cluster: Number(found[1]), proc: Number(found[2]) } : undefined;
}

export function formatAttemptKey(a: AttemptId): AttemptKey {
  return `${a.agent}.${a.cluster}.${a.proc}.${a.attempt}`;
}

/** `undefined` if the text is not an attempt's key (the tag of somebody else's job, for example). */
export function parseAttemptKey(text: string): AttemptId | undefined {
  const found = KEY.exec(text);
  if (!found?.[1]) return undefined;
  return { agent: found[1], cluster: Number(found[2]), proc: Number(found[3]), attempt: Number(found[4]) };
}

/** For text from outside that is to be used as a key. */
export function isAttemptKey(text: string): text is AttemptKey {
  return KEY.test(text);
}
