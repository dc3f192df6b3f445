import { askedFor } from '../backends/remedies.ts';
import type { CandidateStepped, Transitioned } from '../job/events.ts';
import type { LifeEvent } from '../job/life.ts';
import { readNumber, readString, type TextSource } from '../job/values.ts';
import type { SiteCause } from '../site/contract.ts';
import type { Sample } from './measures.ts';

/** HoldReasonCode of a job that the site refused; other codes are about its files or its policy. */
const GRID_FAILED = 37;

/**
 * Turns the steps of jobs into samples about their sites. It remembers since when a job has waited at its site; if the
 * process ends, only that one measurement is lost.
 */
export class SampleTaker {
  /** Unix seconds. */
  readonly #committed = new Map<string, number>();

  /** For a candidate, acceptance or refusal counts. A loss does not: the site may only have been cut off from us. */
  takeCandidate(step: CandidateStepped): Sample[] {
    const at = step.at / 1000;
    const name = `${step.job} ${step.attempt}`;
    if (step.event === 'committed') this.#committed.set(name, at);
    const since = this.#committed.get(name);
    if (step.to !== 'waiting') this.#committed.delete(name);
    if (step.event === 'granted' && since !== undefined) return [{ is: 'wait', seconds: at - since }];
    return step.event === 'refused' ? [{ is: 'failure', at, message: step.message ?? '' }] : [];
  }

  /** The samples of one step; `[]` for most steps. */
  take(step: Transitioned): Sample[] {
    const at = step.at / 1000;
    const since = this.#committed.get(step.job);
    if (step.event === 'committed') this.#committed.set(step.job, at);
    else if (!STILL_WAITS.has(step.event)) this.#committed.delete(step.job);
    if (step.event === 'started') return waited(step, since);
    if (step.event === 'ended') return [...waited(step, since), ...ended(step)];
    if (step.event === 'lost') return [{ is: 'failure', at }];
    const refused = step.event === 'refused' && numberOf(step, 'HoldReasonCode') === GRID_FAILED;
    return refused ? [{ is: 'failure', at, message: stringOf(step, 'HoldReason') ?? '' }] : [];
  }
}

const STILL_WAITS: ReadonlySet<LifeEvent> = new Set(['queued', 'silent']);

function waited(step: Transitioned, since: number | undefined): Sample[] {
  if (since === undefined) return [];
  return [{ is: 'wait', seconds: (numberOf(step, 'JobCurrentStartDate') ?? step.at / 1000) - since }];
}

/** Causes that would have ended the job at any other site too. */
const ITS_OWN: ReadonlySet<string> = new Set<SiteCause>(['timeout', 'deadline', 'out-of-memory', 'no-image']);

function ended(step: Transitioned): Sample[] {
  const cause = stringOf(step, 'GryphusSiteCause');
  if (cause !== undefined) {
    if (ITS_OWN.has(cause)) return [];
    const refusal = cause === 'unsatisfiable' ? { message: stringOf(step, 'GryphusSiteWords') ?? '' } : {};
    return [{ is: 'failure', at: step.at / 1000, ...refusal }];
  }
  const seconds = numberOf(step, 'LastRemoteWallClockTime');
  return seconds === undefined ? [] : [{ is: 'run', seconds }];
}

/** Whether the site refused something that only this job asked for, which is not the site's fault. */
export function isOwnRequest(ad: TextSource, message: string): boolean {
  return askedFor(message).some((name) => {
    const text = readString(ad, name);
    return text === undefined ? (readNumber(ad, name) ?? 0) > (name === 'RequestCpus' ? 1 : 0) : text !== '';
  });
}

function stringOf({ set }: Transitioned, name: string): string | undefined {
  return readString({ get: (wanted) => set[wanted] ?? undefined }, name);
}

function numberOf({ set }: Transitioned, name: string): number | undefined {
  return readNumber({ get: (wanted) => set[wanted] ?? undefined }, name);
}
