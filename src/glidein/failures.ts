import * as z from 'zod';
import type { Kv } from '../queue/api.ts';

/** A pilot that could not run, recorded for its site. */
export interface Failure {
  /** Unix seconds. */
  readonly at: number;
  readonly job: string;
  /** Which node, and why. */
  readonly message: string;
}

const FAILURES = 'glidein-failures';
const KEPT = z.array(z.object({ at: z.number(), job: z.string(), message: z.string() }));
/** How many seconds a failure counts, and the most that are kept for a site. */
const HOUR = 3600;
const MOST = 20;

/** A site's failures of the last hour, oldest first. `now`: Unix seconds. */
export async function failuresAt(kv: Kv, site: string, now: number): Promise<readonly Failure[]> {
  const entry = await kv.get(FAILURES, site);
  return entry === undefined ? [] : recent(entry.value, now);
}

/** For all sites that had failures. */
export async function allFailures(kv: Kv, now: number): Promise<ReadonlyMap<string, readonly Failure[]>> {
  const entries = await kv.list(FAILURES);
  const all = entries.map(({ key, value }) => [key, recent(value, now)] as const);
  return new Map(all.filter(([, failures]) => failures.length > 0));
}

export async function addFailures(kv: Kv, site: string, more: readonly Failure[], now: number): Promise<void> {
  const all = [...(await failuresAt(kv, site, now)), ...more].slice(-MOST);
  await kv.set(FAILURES, site, JSON.stringify(all));
}

function recent(text: string, now: number): readonly Failure[] {
  return KEPT.parse(JSON.parse(text)).filter(({ at }) => now - at < HOUR);
}
