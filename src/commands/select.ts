import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { parseJobId } from '../job/ids.ts';
import type { Selection, Selections } from '../index.ts';

/** How jobs are named on the command line, with the options common to such commands. */
export interface NamedJobs {
  readonly words: readonly string[];
  readonly constraint?: string | undefined;
  readonly all?: boolean | undefined;
}

export const constraintFlag = Flags.string({
  char: 'c',
  helpValue: '<expression>',
  summary: 'Only jobs for which this ClassAd expression is true.',
});

export const allFlag = Flags.boolean({ aliases: ['a'], summary: 'All jobs.' });

/**
 * What each word names: `12` a cluster, `12.3` a job, anything else a user. A constraint narrows each of them; alone,
 * it narrows all jobs. Empty if nothing was named.
 */
export function targets({ words, constraint, all }: NamedJobs): Selection[] {
  const narrow = constraint === undefined ? {} : { constraint };
  if (words.length === 0) return all || constraint !== undefined ? [{ ...(all ? { all } : {}), ...narrow }] : [];
  return words.map((word) => ({ ...target(word), ...narrow }));
}

/** The targets of a command that changes jobs, joining adjacent ids; refused if it names none, or both some and all. */
export function mustName(named: NamedJobs): Selection[] {
  const found: Selection[] = [];
  for (const one of targets(named)) {
    const last = found.at(-1);
    if (one.ids && last?.ids) found[found.length - 1] = { ...last, ids: [...last.ids, ...one.ids] };
    else found.push(one);
  }
  if (found.length === 0) {
    throw new GryphusError('usage', 'You did not specify any jobs.', {
      suggestions: ['Name clusters, jobs or users; or use --constraint or --all.'],
    });
  }
  if (named.all && named.words.length > 0) {
    throw new GryphusError('usage', `--all and ${named.words.join(' ')} contradict each other.`, {
      suggestions: ['Name jobs, or use --all; --constraint narrows either.'],
    });
  }
  return found;
}

/**
 * The same jobs in as few selections as possible: ids and clusters in one, and one for each user; all jobs if nothing
 * is named.
 */
export function selections(named: NamedJobs): Selection[] {
  const each = targets(named);
  const ids = each.flatMap((one) => one.ids ?? []);
  const clusters = each.flatMap((one) => one.clusters ?? []);
  const found = each.filter((one) => one.ids === undefined && one.clusters === undefined);
  if (ids.length > 0 || clusters.length > 0) {
    found.unshift({
      ...(ids.length > 0 ? { ids } : {}),
      ...(clusters.length > 0 ? { clusters } : {}),
      ...(named.constraint === undefined ? {} : { constraint: named.constraint }),
    });
  }
  return found.length > 0 ? found : [{}];
}

/** The same as one selection, in which each job counts once. */
export function oneOf([first = {}, ...or]: readonly Selection[]): Selections {
  return { ...first, or };
}

function target(word: string): Selection {
  const id = parseJobId(word);
  if (id) return { ids: [id] };
  if (/^\d{1,15}$/.test(word)) return { clusters: [Number(word)] };
  if (/^(-|\d+[^\w@])/.test(word)) {
    throw new GryphusError('usage', `'${word}' is neither a cluster (12), nor a job (12.3), nor a user.`, {
      suggestions:
        word === '-9' ? ['To forget jobs, whatever their site still does: gryphus rm --force'] : rangeOf(word),
    });
  }
  return { owner: word };
}

/** The constraint that `12.3-7` was probably meant to express. */
function rangeOf(word: string): string[] {
  const [, cluster, from, to] = /^(\d+)\.\[?(\d+)(?:-|\.\.|:)(\d+)\]?$/.exec(word) ?? [];
  if (cluster === undefined) return [];
  return [`Several jobs of one cluster: ${cluster} --constraint 'ProcId >= ${from} && ProcId <= ${to}'`];
}
