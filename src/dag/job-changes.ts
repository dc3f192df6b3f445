import type { Edited, Transitioned } from '../job/events.ts';
import { USAGE_ATTRIBUTES } from '../job/log-usage.ts';
import { LIFE } from '../job/life.ts';
import { inAd, readNumber, readString } from '../job/values.ts';
import type { JobChange } from './engine/messages.ts';

/** HTCondor's HoldReasonCode for a hold by a user. */
const USER_REQUEST = 1;

/** What a step in a job's life means to its DAG; most steps mean nothing. */
export function jobChangesOf(step: Transitioned): readonly JobChange[] {
  const { from, to, event } = step;
  const [before, after] = [LIFE[from].shows, LIFE[to].shows];
  if (event === 'complete') return [{ what: 'terminated', end: endOf(step), ...usageOf(step) }];
  if (to === 'removed') return [{ what: 'aborted' }];
  if (after === 'held' && before !== 'held') return [...evictedBy(step), heldBy(step)];
  if (before === 'held' && after !== 'held' && after !== 'removed') return [{ what: 'released' }];
  if (to === 'suspended') return [{ what: 'suspended' }];
  if (from === 'suspended' && to === 'running') return [{ what: 'unsuspended' }];
  if (event === 'again' || event === 'lost') return from === 'fetched' ? [{ what: 'evicted' }] : [];
  // A short job may end before it is seen running.
  const begins = before === 'idle' && (to === 'running' || (event === 'ended' && to === 'finished'));
  return begins ? [{ what: 'execute' }] : [];
}

/**
 * A hold evicts a running job from its machine; for a hold by a periodic policy, HTCondor logs no eviction (recorded).
 */
function evictedBy(step: Transitioned): readonly JobChange[] {
  const ran = step.from === 'running' || step.from === 'suspended' || step.from === 'unknown-running';
  if (!ran || step.info?.['by'] === 'policy') return [];
  return [{ what: 'evicted', code: numberSet(step, 'HoldReasonCode') || USER_REQUEST }];
}

function heldBy(step: Transitioned): JobChange {
  const reason = readString(inAd(step.set), 'HoldReason') ?? '';
  const [code, subcode] = [numberSet(step, 'HoldReasonCode'), numberSet(step, 'HoldReasonSubCode')];
  return { what: 'held', reason, code, subcode };
}

function numberSet(step: Transitioned, name: string): number {
  return Number(step.set[name] ?? 0) || 0;
}

function endOf(step: Transitioned): { code: number } | { signal: number } {
  const source = { get: (name: string) => (typeof step.info?.[name] === 'string' ? step.info[name] : undefined) };
  const signal = readNumber(source, 'ExitSignal');
  return signal === undefined ? { code: readNumber(source, 'ExitCode') ?? 0 } : { signal };
}

function usageOf({ info = {} }: Transitioned): { usage?: Record<string, string> } {
  const known = USAGE_ATTRIBUTES.flatMap((name) => {
    const text = info[name];
    return typeof text === 'string' ? [[name, text] as const] : [];
  });
  return known.length === 0 ? {} : { usage: Object.fromEntries(known) };
}

/** HTCondor's PROVISIONING_COMPLETE: the provisioner says that the other nodes may start. */
const PROVISIONED = 2;

export function saysProvisioned(edit: Edited): boolean {
  return Number(edit.set['ProvisionerState'] ?? 0) >= PROVISIONED;
}
