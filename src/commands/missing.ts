import type { Gryphus } from '../index.ts';
import { firstOf } from '../util/first-of.ts';
import { targets } from './select.ts';

/**
 * Says on standard error where the jobs of each unmatched word are, so that standard output does not change. Exit
 * status 1 if a job or cluster exists nowhere.
 */
export async function sayMissing(gryphus: Gryphus, words: readonly string[], here: 'queue' | 'history'): Promise<void> {
  for (const [i, target] of targets({ words }).entries()) {
    const word = words[i] ?? '';
    const one = { ...target, limit: 1, attributes: [] };
    // Always the queue before the history: a job that moves in between is then found in one of them.
    const queued = target.ids
      ? (await firstOf(gryphus.query(one))) !== undefined
      : (await gryphus.clusters(target)).length > 0;
    if (here === 'queue' && queued) continue;
    const ended = (await firstOf(gryphus.history(one))) !== undefined;
    if (here === 'history' && ended) continue;
    if (target.owner !== undefined) say(`There are no jobs of user ${target.owner} in the ${here}.`);
    else if (ended) say(`${word} has left the queue: gryphus history ${word}`);
    else if (queued) say(`${word} is in the queue: gryphus q ${word}`);
    else {
      say(`There is no job ${word}, neither in the queue nor in the history.`);
      process.exitCode = 1;
    }
  }
}

function say(message: string): void {
  process.stderr.write(`gryphus: ${message}\n`);
}
