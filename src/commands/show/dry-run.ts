import type { JobView } from '../../index.ts';
import { formatJobId } from '../../job/ids.ts';
import { isEnd, LIFE, type State } from '../../job/life.ts';
import { command } from './q-rows.ts';
import type { JobOrder } from './act.ts';

/** Whether the action would change a job in this state. */
export function concerned(order: JobOrder, state: State): boolean {
  const { shows } = LIFE[state];
  switch (order) {
    case 'hold':
      return !isEnd(state) && shows !== 'held' && shows !== 'removed';
    case 'release':
      return shows === 'held';
    case 'remove':
      return shows !== 'removed';
    case 'move':
    case 'vacate':
    case 'suspend':
    case 'continue':
    case 'checkpoint':
      return !isEnd(state);
  }
}

export function jobLine({ id, state, ad }: JobView): string {
  return `${formatJobId(id).padEnd(12)} ${state.padEnd(10)} ${command(ad)}`;
}
