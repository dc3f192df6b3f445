import { parseJobId } from '../job/ids.ts';
import type { Selection } from '../index.ts';

/** How jobs are named on the command line, with the options that all such commands have. */
export interface Named {
  readonly words: readonly string[];
  readonly constraint?: string | undefined;
  readonly all?: boolean | undefined;
}

/** Each target by itself: `12` a cluster, `12.3` a job, anything else a user, as `condor_rm` reads them. */
export function targets({ words, constraint, all }: Named): Selection[] {
  const found = words.map((word): Selection => target(word));
  if (constraint !== undefined) found.push({ constraint });
  if (all) found.push({ all: true });
  return found;
}

function target(word: string): Selection {
  const id = parseJobId(word);
  if (id) return { ids: [id] };
  return /^\d{1,15}$/.test(word) ? { clusters: [Number(word)] } : { owner: word };
}

/** All ids and clusters as one selection; owners, which widen it, each as one more. The constraint narrows all. */
export function selections({ words, constraint, all }: Named): Selection[] {
  const each = words.map(target);
  const ids = each.flatMap((one) => one.ids ?? []);
  const clusters = each.flatMap((one) => one.clusters ?? []);
  const narrow = constraint === undefined ? {} : { constraint };
  const found: Selection[] = each.filter((one) => one.owner !== undefined).map((one) => ({ ...one, ...narrow }));
  if (ids.length > 0 || clusters.length > 0) {
    found.unshift({ ...(ids.length > 0 ? { ids } : {}), ...(clusters.length > 0 ? { clusters } : {}), ...narrow });
  }
  if (found.length === 0) found.push({ ...(all ? { all: true } : {}), ...narrow });
  return found;
}
