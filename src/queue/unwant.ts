import { textsOf } from './answers.ts';
import type { QueueContext } from './context.ts';
import { PAGE } from './pages.ts';

/** As many procs in one call. */
const AT_ONCE = 4000;

/** See `Queue.unwant`. */
export async function unwant(
  context: QueueContext,
  cluster: number,
  procs: readonly number[],
): Promise<readonly number[]> {
  const others: number[] = [];
  for (let from = 0; from < procs.length; from += AT_ONCE) {
    const some = procs.slice(from, from + AT_ONCE);
    others.push(...textsOf(await context.db.script('unwant', [cluster, context.now(), ...some])).map(Number));
  }
  return others;
}

/** See `Queue.unwanted`. */
export async function unwanted(
  { db }: QueueContext,
  cluster: number,
  from: number,
  to: number,
): Promise<ReadonlySet<number>> {
  const pages: number[] = [];
  for (let page = Math.floor(from / PAGE); page * PAGE < to; page++) pages.push(page);
  const found = new Set<number>();
  if (pages.length === 0) return found;
  const bits = await db.run((redis) => redis.hmgetBuffer(`${db.prefix}u:${cluster}`, ...pages.map(String)));
  for (const [i, page] of pages.entries())
    for (const [at, byte] of (bits[i] ?? []).entries())
      for (let bit = 0; bit < 8; bit++) {
        const proc = page * PAGE + 8 * at + bit;
        if ((byte >> bit) & 1 && proc >= from && proc < to) found.add(proc);
      }
  return found;
}
