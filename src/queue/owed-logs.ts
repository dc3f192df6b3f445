import type { Kv } from './api.ts';
import { OWED_LOGS, type OwedLogs, WHOLE } from './tables.ts';

/** The Scheduler's last report of logs that it cannot write. */
export async function owedLogs(kv: Pick<Kv, 'get'>): Promise<OwedLogs> {
  return (await OWED_LOGS.get(kv, WHOLE)) ?? { count: 0, logs: [] };
}

/** Publishes the report for `status` and `why`. */
export async function reportOwed(kv: Kv, owed: OwedLogs): Promise<void> {
  if (owed.count === 0) await OWED_LOGS.delete(kv, WHOLE);
  else await OWED_LOGS.set(kv, WHOLE, owed);
}
