import * as z from 'zod';
import { MANNERS } from '../gridmanager/manners.ts';
import type { Kv } from '../queue/api.ts';

const VIEW = z.object({
  learned: z.object({ cap: z.number(), words: z.string(), at: z.number() }).optional(),
  outOfUse: z.object({ words: z.string(), probeAt: z.number(), probing: z.boolean() }).optional().catch(undefined),
});

/** What the GridManagers know of a site's limits, the tightest of them, and why it is out of use, by the site's name. */
export type KnownManners = z.infer<typeof VIEW>;

export async function siteManners(kv: Kv): Promise<ReadonlyMap<string, KnownManners>> {
  const found = new Map<string, KnownManners>();
  for (const { key, value } of await kv.list(MANNERS)) {
    const site = key.slice(key.lastIndexOf('/') + 1);
    const one = VIEW.parse(JSON.parse(value));
    const other = found.get(site);
    const learned = tighter(one.learned, other?.learned);
    const outOfUse = one.outOfUse ?? other?.outOfUse;
    found.set(site, { ...(learned && { learned }), ...(outOfUse === undefined ? {} : { outOfUse }) });
  }
  return found;
}

function tighter(a: KnownManners['learned'], b: KnownManners['learned']): KnownManners['learned'] {
  if (a === undefined || b === undefined) return a ?? b;
  return a.cap <= b.cap ? a : b;
}
