import * as z from 'zod';
import type { Kv } from '../../queue/api.ts';
import type { UserLogs } from './user-logs.ts';

const OWED = z.object({
  count: z.number(),
  logs: z.array(z.object({ path: z.string(), since: z.number(), error: z.string() })),
});
/** User logs that cannot be written now: how many, and the first of them. */
export type OwedLogs = z.infer<typeof OWED>;

/** The Scheduler's last report of logs that it cannot write. */
export async function owedLogs(kv: Pick<Kv, 'get'>): Promise<OwedLogs> {
  const entry = await kv.get('user-log', 'owed');
  return entry ? OWED.parse(JSON.parse(entry.value)) : { count: 0, logs: [] };
}

/** Publishes the report for `status` and `why`. */
export async function reportOwed(kv: Kv, owed: ReturnType<UserLogs['owed']>): Promise<void> {
  if (owed.count === 0) await kv.delete('user-log', 'owed');
  else await kv.set('user-log', 'owed', JSON.stringify(owed));
}
