import * as z from 'zod';
import { SITE_BACKOFF } from '../gridmanager/backoff.ts';
import type { Kv } from '../queue/api.ts';

const VIEW = z.object({
  learned: z.object({ cap: z.number(), message: z.string(), at: z.number() }).optional(),
  outOfUse: z.object({ message: z.string(), probeAt: z.number(), probing: z.boolean() }).optional().catch(undefined),
});

/** By site: the tightest limits that any GridManager has observed, and why the site is out of use. */
export type KnownBackoff = z.infer<typeof VIEW>;

export async function siteBackoffs(kv: Kv): Promise<ReadonlyMap<string, KnownBackoff>> {
  const found = new Map<string, KnownBackoff>();
  for (const { key, value } of await kv.list(SITE_BACKOFF)) {
    const site = key.slice(key.lastIndexOf('/') + 1);
    const one = VIEW.parse(JSON.parse(value));
    const other = found.get(site);
    const learned = tighter(one.learned, other?.learned);
    const outOfUse = one.outOfUse ?? other?.outOfUse;
    found.set(site, { ...(learned && { learned }), ...(outOfUse === undefined ? {} : { outOfUse }) });
  }
  return found;
}

function tighter(a: KnownBackoff['learned'], b: KnownBackoff['learned']): KnownBackoff['learned'] {
  if (a === undefined || b === undefined) return a ?? b;
  return a.cap <= b.cap ? a : b;
}
