import type { Backend } from '../backends/contract.ts';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes, Refusal } from '../site/contract.ts';
import type { Transport } from '../transport/contract.ts';
import type { SiteAnswer } from './answer.ts';
import type { Asking } from './asking.ts';
import { percentDecode } from '../site/escape.ts';
import type { Content } from './content.ts';
import type { Packs } from './packs.ts';
import type { ResultTransfer } from './result-transfer.ts';
import type { Session } from './session.ts';
import type { View } from './view.ts';

/** What every operation at one site works with. */
export interface JobManagerContext {
  readonly name: string;
  readonly session: Session;
  readonly transport: Transport;
  readonly backend: Backend;
  readonly view: View;
  readonly asking: Asking;
  readonly content: Content;
  readonly resultTransfer: ResultTransfer;
  /** Undefined: small inputs are sent one by one. */
  readonly packs: Packs | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** The most attempts in one submit command; 1 once the site has refused arrays. */
  arrays: number;
  /** The position of the agent's queue for the site to keep; empty if there is no queue. */
  readonly mark: () => Promise<readonly string[]>;
  /** Makes the next poll list everything, after a change that the view did not see. */
  readonly listAgain: () => void;
}

/** Joins the keys, hashes and numbers of one request. */
export function words(list: readonly string[]): string {
  return list.join(' ');
}

export function* batches<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size);
}

/** The answer's lines of one kind, split into fields. */
export function answerFields(answer: SiteAnswer, kind: string): string[][] {
  return answer.lines.filter((line) => line.kind === kind).map((line) => line.rest.split(' '));
}

export function refuse(kind: Refusal['kind'], code: Refusal['code'], message: string): Outcome {
  return { ok: false, refusal: { kind, code, message } };
}

/** The refusal for a failed write at the site, which usually means that its disk is full. */
export function unwritten(site: string, encoded: string | undefined): Outcome {
  const said = percentDecode(encoded ?? '').trim();
  const message = said === '' ? '' : `: ${said.split('\n').at(-1)}`;
  return refuse('later', 'disk-full', `${site} could not write the job's record (disk or quota full?)${message}`);
}

/** Drops outcomes that were not requested, such as another site's attempt. */
export function ofAsked(asked: readonly AttemptKey[], outcomes: Outcomes): Outcomes {
  const found = asked.flatMap((key): [AttemptKey, Outcome][] => {
    const outcome = outcomes.get(key);
    return outcome ? [[key, outcome]] : [];
  });
  return new Map(found);
}

/** Throws if the site left out the outcome of a key. */
export function checkComplete(
  site: string,
  asked: readonly AttemptKey[],
  outcomes: ReadonlyMap<AttemptKey, Outcome>,
): void {
  const silent = asked.find((key) => !outcomes.has(key));
  if (silent !== undefined) throw new GryphusError('protocol-error', `${site} did not report on ${silent}.`);
}
