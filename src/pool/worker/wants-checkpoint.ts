import { readBoolean } from '../../job/values.ts';
import { jobAdOf } from './job-ad-of.ts';
import type { Run } from './run.ts';

/** Whether its submit file says `want_checkpoint = true`. */
export function wantsCheckpoint(run: Run): boolean {
  if (!run.sandboxed) return false;
  const ad = jobAdOf(run);
  return readBoolean({ get: (name) => ad[name] ?? undefined }, 'WantCheckpoint') === true;
}
