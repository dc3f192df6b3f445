import * as z from 'zod';
import { adFrom } from '../pool/wire/ads.ts';
import type { ClassAd } from '../classad/api.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readString } from '../job/values.ts';
import type { Kv } from '../queue/api.ts';
import { maySuit } from './matches.ts';

/** The attributes in which workers report container runtimes. */
const NAMES = ['HasContainer', 'HasDocker', 'HasDockerURL', 'HasSIF', 'HasSandboxImage', 'HasSingularity'];
const SEEN = 'glidein-runtimes';
const KEPT = z.object({ at: z.number(), has: z.array(z.string()), message: z.string().optional() });
/** How many seconds a report is trusted: sites change. */
const DAY = 86_400;
/** How many seconds pass before an unchanged report is stored again. */
const HOUR = 3600;

/** Which container runtimes the pilots of a site last reported. */
export interface RuntimesSeen {
  /** Unix seconds. */
  readonly at: number;
  /** The attributes that at least one worker had. */
  readonly has: readonly string[];
  /** Why they lacked others, in one worker's words. */
  readonly message?: string | undefined;
}

/** For all sites. `now`: Unix seconds. */
export async function runtimesSeen(kv: Kv, now: number): Promise<ReadonlyMap<string, RuntimesSeen>> {
  const entries = (await kv.list(SEEN)).map(({ key, value }) => [key, KEPT.parse(JSON.parse(value))] as const);
  return new Map(entries.filter(([, { at }]) => now - at < DAY));
}

/** Records what pilots that are home report, by site. A pilot that has not looked yet reports nothing. */
export async function rememberRuntimes(
  kv: Kv,
  pilots: readonly { readonly site: string; readonly ad?: AttrTexts }[],
  now: number,
): Promise<ReadonlyMap<string, RuntimesSeen>> {
  const known = new Map(await runtimesSeen(kv, now));
  const here = new Map<string, RuntimesSeen>();
  for (const { site, ad } of pilots) {
    if (ad?.['HasContainer'] === undefined) continue;
    const has = NAMES.filter((name) => ad[name] === 'true' || here.get(site)?.has.includes(name));
    const message = readString({ get: (name) => ad[name] ?? undefined }, 'ContainerOfflineReason');
    here.set(site, { at: now, has, message: message ?? here.get(site)?.message });
  }
  for (const [site, seen] of here) {
    const before = known.get(site);
    known.set(site, seen);
    if (before && now - before.at < HOUR && String(before.has) === String(seen.has)) continue;
    await kv.set(SEEN, site, JSON.stringify(seen));
  }
  return known;
}

/** As attributes of a machine; empty if nothing was seen at the site. */
export function asAttributes(seen: RuntimesSeen | undefined): AttrTexts {
  return seen === undefined ? {} : Object.fromEntries(NAMES.map((name) => [name, String(seen.has.includes(name))]));
}

/** Whether the job requests a runtime that was not seen there. */
export function lacksRuntime(job: ClassAd, seen: RuntimesSeen): boolean {
  return !maySuit(job, adFrom(asAttributes(seen)));
}
