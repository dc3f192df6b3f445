import * as z from 'zod';
import { adFrom } from '../pool/ads.ts';
import type { ClassAd } from '../classad/api.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readString } from '../job/values.ts';
import type { Kv } from '../queue/api.ts';
import { maySuit } from './matches.ts';

/** What workers say of the containers that they can start. */
const NAMES = ['HasContainer', 'HasDocker', 'HasDockerURL', 'HasSIF', 'HasSandboxImage', 'HasSingularity'];
const SEEN = 'glidein-runtimes';
const KEPT = z.object({ at: z.number(), has: z.array(z.string()), message: z.string().optional() });
/** Sites change: what was seen longer ago is tried again, seconds. */
const DAY = 86_400;
/** So often the same is written down again, seconds. */
const HOUR = 3600;

/** What the pilots of a site were last seen to run containers by. */
export interface RuntimesSeen {
  /** Unix seconds. */
  readonly at: number;
  /** Of what workers say, what one of them had. */
  readonly has: readonly string[];
  /** Why they could not do more, in the words of one. */
  readonly message?: string | undefined;
}

/** By sites. `now`: Unix seconds. */
export async function runtimesSeen(kv: Kv, now: number): Promise<ReadonlyMap<string, RuntimesSeen>> {
  const entries = (await kv.list(SEEN)).map(({ key, value }) => [key, KEPT.parse(JSON.parse(value))] as const);
  return new Map(entries.filter(([, { at }]) => now - at < DAY));
}

/** Remembers what pilots that are home say, by their sites. One that has not looked yet says nothing. */
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

/** As the attributes of a machine; of a site where nothing was seen nothing is known. */
export function asAttributes(seen: RuntimesSeen | undefined): AttrTexts {
  return seen === undefined ? {} : Object.fromEntries(NAMES.map((name) => [name, String(seen.has.includes(name))]));
}

/** The job asks for a runtime that was not seen there. */
export function lacksRuntime(job: ClassAd, seen: RuntimesSeen): boolean {
  return !maySuit(job, adFrom(asAttributes(seen)));
}
