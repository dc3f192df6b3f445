import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes } from '../site/contract.ts';
import {
  batches,
  checkComplete,
  refuse,
  type JobManagerContext,
  unwritten,
  words,
  answerFields,
} from './site-context.ts';

/** Gives attempts that wait at the site leave to start. */
export async function leave(site: JobManagerContext, keys: readonly AttemptKey[]): Promise<Outcomes> {
  const outcomes = new Map<AttemptKey, Outcome>();
  for (const batch of batches(keys, 500)) {
    const answer = await site.session.exchange('leave', [words(batch)]);
    for (const [key = ''] of answerFields(answer, 'left')) outcomes.set(key as AttemptKey, { ok: true });
    for (const [key = ''] of answerFields(answer, 'withdrawn')) {
      outcomes.set(key as AttemptKey, refuse('gone', 'unknown-key', `${key} was withdrawn at ${site.name}.`));
    }
    for (const [key = ''] of answerFields(answer, 'gone')) {
      outcomes.set(key as AttemptKey, refuse('gone', 'unknown-key', `${site.name} has no record of ${key}.`));
    }
    for (const key of batch) if (!outcomes.has(key)) outcomes.set(key, unwritten(site.name, undefined));
  }
  checkComplete(site.name, keys, outcomes);
  return outcomes;
}
