import type { Step } from '../maker.ts';
import { HELD_AT_SUBMIT } from '../../job/hold.ts';

/** `hold = true`: the job waits to be released. */
export const hold: Step = {
  name: 'hold',
  run(job) {
    if (job.boolParam('hold')) {
      job.setInt('JobStatus', 5);
      job.setInt('HoldReasonCode', HELD_AT_SUBMIT);
      job.setString('HoldReason', "submitted on hold at user's request");
    } else job.setInt('JobStatus', 1);
  },
};

const WHEN: Readonly<Record<string, number>> = { never: 0, always: 1, complete: 2, error: 3, start: 4 };

export const notification: Step = {
  name: 'notification',
  run(job) {
    const when = WHEN[(job.param('notification', 'JobNotification') ?? 'never').toLowerCase()];
    if (when === undefined) {
      throw job.fault(
        'notification',
        "Notification must be 'Never', 'Always', 'Complete', 'Start', or 'Error'",
        [],
        'JobNotification',
      );
    }
    job.setInt('JobNotification', when);
  },
};

export const rank: Step = {
  name: 'rank',
  run(job) {
    const text = job.param('rank', 'preferences');
    if (text === undefined) job.setReal('Rank', 0);
    else job.setExpr('Rank', text, 'rank');
  },
};

const EXPRESSIONS: readonly (readonly [command: string, attribute: string])[] = [
  ['periodic_hold', 'PeriodicHold'],
  ['periodic_hold_reason', 'PeriodicHoldReason'],
  ['periodic_hold_subcode', 'PeriodicHoldSubCode'],
  ['periodic_release', 'PeriodicRelease'],
  ['periodic_remove', 'PeriodicRemove'],
  ['periodic_vacate', 'PeriodicVacate'],
  ['on_exit_hold_reason', 'OnExitHoldReason'],
  ['on_exit_hold_subcode', 'OnExitHoldSubCode'],
];

/** Each policy expression is put into its attribute unchanged. */
export const periodic: readonly Step[] = EXPRESSIONS.map(([command, attribute]) => ({
  name: command,
  run(job) {
    const text = job.param(command, attribute);
    if (text !== undefined) job.setExpr(attribute, text, command);
  },
}));

export const leaveInQueue: Step = {
  name: 'leave_in_queue',
  run(job) {
    const text = job.param('leave_in_queue', 'LeaveJobInQueue');
    if (text !== undefined) job.setExpr('LeaveJobInQueue', text, 'leave_in_queue');
    else if (!job.draft.has('LeaveJobInQueue')) job.setBool('LeaveJobInQueue', false);
  },
};
