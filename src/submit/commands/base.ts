import type { Attr } from '../attr.ts';
import { boolAttr, intAttr, realAttr, stringAttr } from '../attr.ts';
import type { Draft } from '../draft.ts';

/** Counters of a job that has not done anything yet. */
const ZERO =
  `ExitStatus NumCkpts NumJobStarts NumJobCompletions NumRestarts NumSystemHolds CommittedTime CommittedSlotTime
  CumulativeSlotTime TotalSuspensions LastSuspensionTime CumulativeSuspensionTime CommittedSuspensionTime`.split(/\s+/);
const ZERO_REAL = `RemoteWallClockTime RemoteUserCpu RemoteSysCpu CumulativeRemoteUserCpu CumulativeRemoteSysCpu`.split(
  /\s+/,
);

export interface BaseFacts {
  readonly owner: string;
  /** Unix seconds. */
  readonly now: number;
  readonly cluster: number;
  /** How the job was submitted: HTCondor's JobSubmitMethod (0 for condor_submit). */
  readonly method: number;
}

/** The initial attributes of every job's ad. */
export function setBase(draft: Draft, facts: BaseFacts): void {
  const attributes: readonly (readonly [string, Attr])[] = [
    ['MyType', stringAttr('Job')],
    ['TargetType', stringAttr('Machine')],
    ['ClusterId', intAttr(facts.cluster)],
    ['QDate', intAttr(facts.now)],
    ['EnteredCurrentStatus', intAttr(facts.now)],
    ['Owner', stringAttr(facts.owner)],
    ['JobSubmitMethod', intAttr(facts.method)],
    ['ExitBySignal', boolAttr(false)],
    ...ZERO.map((name) => [name, intAttr(0)] as const),
    ...ZERO_REAL.map((name) => [name, realAttr(0)] as const),
  ];
  for (const [name, attr] of attributes) draft.set(name, attr);
}

/** The expression texts of the counters of a job that has not done anything yet. */
export function freshCounters(): Readonly<Record<string, string>> {
  const counters = [...ZERO.map((name) => [name, '0'] as const), ...ZERO_REAL.map((name) => [name, '0.0'] as const)];
  return { ExitBySignal: 'false', ...Object.fromEntries(counters) };
}
