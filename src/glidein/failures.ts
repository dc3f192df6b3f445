import type { Kv } from '../queue/api.ts';
import { type Failure, GLIDEIN_FAILURES } from '../queue/tables.ts';

/** How many seconds a failure counts, and the most that are kept for a site. */
const HOUR = 3600;
const MOST = 20;

/** A site's failures of the last hour, oldest first. `now`: Unix seconds. */
export async function failuresAt(kv: Kv, site: string, now: number): Promise<readonly Failure[]> {
  return recent((await GLIDEIN_FAILURES.get(kv, site)) ?? [], now);
}

/** For all sites that had failures. */
export async function allFailures(kv: Kv, now: number): Promise<ReadonlyMap<string, readonly Failure[]>> {
  const all = (await GLIDEIN_FAILURES.list(kv)).map(({ key, value }) => [key, recent(value, now)] as const);
  return new Map(all.filter(([, failures]) => failures.length > 0));
}

export async function addFailures(kv: Kv, site: string, more: readonly Failure[], now: number): Promise<void> {
  await GLIDEIN_FAILURES.set(kv, site, [...(await failuresAt(kv, site, now)), ...more].slice(-MOST));
}

function recent(failures: readonly Failure[], now: number): readonly Failure[] {
  return failures.filter(({ at }) => now - at < HOUR);
}
