import type { Attrs } from './attrs.ts';
import { truthOf } from './values.ts';

/** Whether the job currently asks to stay in the queue after its end (`leave_in_queue`). */
export function staysInQueue(attrs: Attrs): boolean {
  return attrs.has('LeaveJobInQueue') && truthOf(attrs, 'LeaveJobInQueue') === true;
}
