import type { Attrs } from './attrs.ts';
import { truthOf } from './values.ts';

/** The job asks to stay in the queue after its end (`leave_in_queue`), as it says now. */
export function staysInQueue(attrs: Attrs): boolean {
  return attrs.has('LeaveJobInQueue') && truthOf(attrs, 'LeaveJobInQueue') === true;
}
