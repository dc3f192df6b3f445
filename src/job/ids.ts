/** `ClusterId.ProcId`, counted as in HTCondor: clusters from 1, procs from 0. */
export interface JobId {
  readonly cluster: number;
  readonly proc: number;
}

/**
 * The name of one attempt, unique forever: `<agent id>.<cluster>.<proc>.<attempt>` (docs/ARCHITECTURE.md, invariant 3).
 * Within the pool, each node of a parallel job's attempt has a key too, with the node's number added: `….<attempt>.<node>`.
 */
export type AttemptKey = WholeKey | `${WholeKey}.${number}`;
type WholeKey = `${string}.${number}.${number}.${number}`;

export interface AttemptId extends JobId {
  readonly agent: string;
  /** Counts from 1 and grows by one whenever the user or a policy asks for the program to be started again. */
  readonly attempt: number;
  /** Of a parallel job in the pool: which of its nodes, counted from 0. */
  readonly node?: number;
}

const JOB_ID = /^(\d{1,15})\.(\d{1,15})$/;
const KEY = /^([A-Za-z0-9_-]{1,64})\.(\d{1,15})\.(\d{1,15})\.(\d{1,15})(?:\.(\d{1,7}))?$/;

/** A job's id as text: `12.3`. */
export function formatJobId(id: JobId): string {
  return `${id.cluster}.${id.proc}`;
}

/** `undefined` if the text is not `cluster.proc`. */
export function parseJobId(text: string): JobId | undefined {
  const found = JOB_ID.exec(text);
  return found ? { cluster: Number(found[1]), proc: Number(found[2]) } : undefined;
}

export function formatAttemptKey(a: AttemptId): WholeKey {
  return `${a.agent}.${a.cluster}.${a.proc}.${a.attempt}`;
}

/** `undefined` if the text is not an attempt's key (the tag of somebody else's job, for example). */
export function parseAttemptKey(text: string): AttemptId | undefined {
  const found = KEY.exec(text);
  if (!found?.[1]) return undefined;
  const attempt = { agent: found[1], cluster: Number(found[2]), proc: Number(found[3]), attempt: Number(found[4]) };
  return found[5] === undefined ? attempt : { ...attempt, node: Number(found[5]) };
}

/** The key of one node of a parallel job's attempt in the pool, which workers know it by. */
export function nodeKey(attempt: AttemptKey, node: number): AttemptKey {
  return `${attempt}.${node}` as AttemptKey;
}

/** The key of the attempt that a node's key belongs to; other keys are returned as they are. */
export function attemptOfNode(key: AttemptKey): AttemptKey {
  const parsed = parseAttemptKey(key);
  return parsed?.node === undefined ? key : formatAttemptKey(parsed);
}

/** For text from outside that is to be used as a key. */
export function isAttemptKey(text: string): text is AttemptKey {
  return KEY.test(text);
}
