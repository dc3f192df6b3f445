import type { Kv } from '../queue/api.ts';
import { type BackoffView, type Learned, SITE_BACKOFF } from '../queue/tables.ts';

/** By site: the tightest limits that any GridManager has observed, and why the site is out of use. */
export async function siteBackoffs(kv: Kv): Promise<ReadonlyMap<string, BackoffView>> {
  const found = new Map<string, BackoffView>();
  for (const { key, value: one } of await SITE_BACKOFF.list(kv)) {
    const site = key.slice(key.lastIndexOf('/') + 1);
    const other = found.get(site);
    const learned = tighter(one.learned, other?.learned);
    const outOfUse = one.outOfUse ?? other?.outOfUse;
    found.set(site, { ...(learned && { learned }), ...(outOfUse && { outOfUse }) });
  }
  return found;
}

function tighter(a: Learned | undefined, b: Learned | undefined): Learned | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a.cap <= b.cap ? a : b;
}
