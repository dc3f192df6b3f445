import { adFrom } from '../pool/wire/ads.ts';
import type { ClassAd } from '../classad/api.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { inAd, readString } from '../job/values.ts';
import type { Kv } from '../queue/api.ts';
import { GLIDEIN_RUNTIMES, type RuntimesSeen } from '../queue/tables.ts';
import { maySuit } from './matches.ts';

/** The attributes in which workers report container runtimes. */
const NAMES = ['HasContainer', 'HasDocker', 'HasDockerURL', 'HasSIF', 'HasSandboxImage', 'HasSingularity'];
/** How many seconds a report is trusted: sites change. */
const DAY = 86_400;
/** How many seconds pass before an unchanged report is stored again. */
const HOUR = 3600;

/** For all sites. `now`: Unix seconds. */
export async function runtimesSeen(kv: Kv, now: number): Promise<ReadonlyMap<string, RuntimesSeen>> {
  const rows = (await GLIDEIN_RUNTIMES.list(kv)).filter(({ value }) => now - value.at < DAY);
  return new Map(rows.map(({ key, value }) => [key, value]));
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
    const message = readString(inAd(ad), 'ContainerOfflineReason');
    here.set(site, { at: now, has, message: message ?? here.get(site)?.message });
  }
  for (const [site, seen] of here) {
    const before = known.get(site);
    known.set(site, seen);
    if (before && now - before.at < HOUR && String(before.has) === String(seen.has)) continue;
    await GLIDEIN_RUNTIMES.set(kv, site, seen);
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
