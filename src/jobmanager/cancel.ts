import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { percentDecode } from '../site/escape.ts';
import type { Looker } from './look.ts';
import { batches, checkComplete, refuse, type JobManagerContext, words, answerFields } from './site-context.ts';

/** `WAITING`: only what has not started. `FORCE`: jobs that the batch system cannot get rid of. */
type How = 'TERM' | 'KILL' | 'FORCE' | 'WAITING';

export interface CancelPatience {
  /** Milliseconds between TERM and KILL. */
  readonly killAfter: number;
  /** Milliseconds after which the caller is told to ask again. */
  readonly giveUp: number;
}

/**
 * Takes the locks first, so that nothing that has not started ever will. Then tells the batch system, waits until
 * nothing of the attempts is alive, and lets the site forget them. `stubborn`: keys that should have ended long ago.
 */
export async function cancel(
  site: JobManagerContext,
  looker: Looker,
  keys: readonly AttemptKey[],
  first: 'TERM' | 'WAITING',
  patience: CancelPatience,
  stubborn: ReadonlySet<AttemptKey>,
): Promise<Outcomes> {
  const outcomes = new Map<AttemptKey, Outcome>();
  crashPoint('jm.before-cancel');
  const begun = site.now();
  let left: readonly AttemptKey[] = keys;
  let how: How = first;
  let ask = true;
  while (left.length > 0) {
    const over = new Set<AttemptKey>();
    if (ask) {
      const forced = left.filter((key) => stubborn.has(key));
      const others = left.filter((key) => !stubborn.has(key));
      for (const batch of batches(forced, 200)) await send(site, batch, 'FORCE', over, outcomes);
      for (const batch of batches(others, 200)) await send(site, batch, how, over, outcomes);
    }
    if (ask) looker.hurry();
    ask = false;
    // An attempt that ends with an exit record is reported without asking the queue.
    await looker.look({ queue: looker.due <= 0 });
    for (const key of left) if (isOver(site, key)) over.add(key);
    await forget(
      site,
      [...over].filter((key) => !outcomes.has(key)),
      outcomes,
    );
    left = left.filter((key) => !outcomes.has(key));
    const spent = site.now() - begun;
    if (left.length > 0 && spent > patience.giveUp) {
      for (const key of left)
        outcomes.set(key, refuse('later', 'site-busy', `${key} is still being terminated at ${site.name}.`));
      break;
    }
    if (how === 'TERM' && spent > patience.killAfter) {
      how = 'KILL';
      ask = true;
    } else if (left.length > 0) await delay(Math.min(100 + spent / 10, 2000));
  }
  crashPoint('jm.after-cancel');
  checkComplete(site.name, keys, outcomes);
  return outcomes;
}

async function send(
  site: JobManagerContext,
  batch: readonly AttemptKey[],
  how: How,
  over: Set<AttemptKey>,
  outcomes: Map<AttemptKey, Outcome>,
) {
  const answer = await site.session.exchange('cancel', [words(batch)], [how], 180_000);
  const [status = '0', said = ''] = answerFields(answer, 'cancel')[0] ?? [];
  const tags: string[] = [];
  for (const [name = ''] of answerFields(answer, 'none')) {
    const key = name as AttemptKey;
    const lines = site.view.linesWithoutRecord(key);
    if (how === 'WAITING' && lines.some((line) => line.entry.is === 'running'))
      outcomes.set(key, refuse('never', 'already-started', `${key} is running at ${site.name}.`));
    else if (lines.length > 0) tags.push(...lines.map((line) => line.tag));
    else {
      site.view.forget(key);
      outcomes.set(key, { ok: true });
    }
  }
  // Without its directory, it is known only by what the queue shows.
  if (tags.length > 0) await site.session.exchange('prune', [words(tags)]);
  for (const [key = ''] of how === 'WAITING' ? [] : answerFields(answer, 'taken')) {
    const entry = site.view.get(key as AttemptKey);
    if (entry !== undefined) entry.cancelled = true;
  }
  if (how === 'WAITING') {
    for (const [key = ''] of answerFields(answer, 'taken')) {
      outcomes.set(key as AttemptKey, refuse('never', 'already-started', `${key} has started at ${site.name}.`));
    }
  }
  for (const [key = '', n = '0'] of answerFields(answer, 'fenced')) {
    if (status === '0' || n === '0') over.add(key as AttemptKey);
  }
  for (const [key = ''] of answerFields(answer, 'ended')) over.add(key as AttemptKey);
  if (status === '0') return;
  // None of these can start any more, but they may still run or be queued.
  const words_ = percentDecode(said).trim().split('\n').at(-1) ?? '';
  for (const key of batch) {
    if (!over.has(key) && !outcomes.has(key)) {
      outcomes.set(
        key,
        refuse('later', 'site-busy', `${site.name} could not cancel it: ${words_ || `status ${status}`}`),
      );
    }
  }
}

function isOver(site: JobManagerContext, key: AttemptKey): boolean {
  const entry = site.view.get(key);
  return entry === undefined || entry.exit !== undefined || entry.report?.is === 'ended';
}

/** COMMIT_END for any number of attempts, 500 in each exchange. */
export async function forget(
  site: JobManagerContext,
  keys: readonly AttemptKey[],
  outcomes: Map<AttemptKey, Outcome>,
): Promise<void> {
  for (const batch of batches(keys, 500)) {
    const answer = await site.session.exchange('forget', [words(batch)], await site.mark(), 600_000);
    for (const [key = ''] of answerFields(answer, 'forgot')) {
      site.view.forget(key as AttemptKey);
      outcomes.set(key as AttemptKey, { ok: true });
    }
    for (const [key = ''] of answerFields(answer, 'failed')) {
      outcomes.set(
        key as AttemptKey,
        refuse('later', 'site-busy', `${site.name} could not delete the files of ${key}.`),
      );
    }
  }
}
