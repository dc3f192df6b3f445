import * as z from 'zod';
import { SITE_WAYS } from '../gridmanager/site-workers.ts';
import type { Queue } from '../queue/api.ts';

const VIEW = z.object({
  because: z.array(z.string()),
  came: z.object({ connection: z.number(), mailbox: z.number() }).optional(),
  /** Unix milliseconds. */
  at: z.number(),
});
/** How workers of a site reach the agent, as found when it last had some. */
export type SiteWaysView = z.infer<typeof VIEW>;

export async function siteWays(queue: Pick<Queue, 'kv'>, site: string): Promise<SiteWaysView | undefined> {
  const entry = await queue.kv.get(SITE_WAYS, site);
  return entry ? VIEW.parse(JSON.parse(entry.value)) : undefined;
}
