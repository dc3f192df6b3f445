import type { Backend } from '../backends/contract.ts';
import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes, Refusal } from '../site/contract.ts';
import type { Transport } from '../transport/contract.ts';
import type { Answer } from './answer.ts';
import { percentDecode } from './escape.ts';
import type { Content } from './content.ts';
import type { ResultTransfer } from './result-transfer.ts';
import type { Session } from './session.ts';
import type { View } from './view.ts';

/** What every operation of one site works with. */
export interface SiteContext {
  readonly name: string;
  readonly session: Session;
  readonly transport: Transport;
  readonly backend: Backend;
  readonly view: View;
  readonly content: Content;
  readonly resultTransfer: ResultTransfer;
  /** Milliseconds that only grow. */
  readonly now: () => number;
  /** Most attempts in one submit command; 1 once the site has refused arrays. */
  arrays: number;
  /** How far the agent's queue is now, as the site keeps it; nobody's queue: nothing. */
  readonly mark: () => Promise<readonly string[]>;
  /** The next poll must list everything: something happened that the view did not see. */
  readonly listAgain: () => void;
}

/** Keys, hashes and numbers of one request, as words. */
export function words(list: readonly string[]): string {
  return list.join(' ');
}

export function* batches<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size);
}

/** The answer's lines of one kind, each as its words. */
export function wordsOf(answer: Answer, kind: string): string[][] {
  return answer.lines.filter((line) => line.kind === kind).map((line) => line.rest.split(' '));
}

export function refuse(kind: Refusal['kind'], code: Refusal['code'], message: string): Outcome {
  return { ok: false, refusal: { kind, code, message } };
}

/** What the site said when it could not write; most often its disk is full. */
export function unwritten(site: string, encoded: string | undefined): Outcome {
  const said = percentDecode(encoded ?? '').trim();
  const message = said === '' ? '' : `: ${said.split('\n').at(-1)}`;
  return refuse('later', 'disk-full', `${site} could not write the job's record (disk or quota full?)${message}`);
}

/** A site has nothing to say of what it was not asked: another site's attempt, say. */
export function ofAsked(asked: readonly AttemptKey[], outcomes: Outcomes): Outcomes {
  const found = asked.flatMap((key): [AttemptKey, Outcome][] => {
    const outcome = outcomes.get(key);
    return outcome ? [[key, outcome]] : [];
  });
  return new Map(found);
}

/** Every key has an outcome, or the site did not answer as it should. */
export function checkComplete(
  site: string,
  asked: readonly AttemptKey[],
  outcomes: ReadonlyMap<AttemptKey, Outcome>,
): void {
  const silent = asked.find((key) => !outcomes.has(key));
  if (silent !== undefined) throw new GryphusError('protocol-error', `${site} said nothing about ${silent}.`);
}
