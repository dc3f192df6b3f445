import type { Gryphus } from '../index.ts';
import { firstOf } from '../util/first-of.ts';
import { targets } from './select.ts';

/**
 * Says of each word that named nothing here where its jobs are: on standard error, so that what is printed stays what it is.
 * Exit status 1 where a job or cluster is nowhere.
 */
export async function sayMissing(gryphus: Gryphus, words: readonly string[], here: 'queue' | 'history'): Promise<void> {
  for (const [i, target] of targets({ words }).entries()) {
    const word = words[i] ?? '';
    const one = { ...target, limit: 1, attributes: [] };
    // The queue before the history, whichever is asked about: what moves meanwhile is in one of them.
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
