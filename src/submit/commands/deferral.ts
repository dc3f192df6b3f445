import type { JobMaker, Step } from '../maker.ts';

const PREPARATION = 300;
const WINDOW = 0;

const ASKS_FOR = ['CronMinute', 'CronHour', 'CronDayOfMonth', 'CronMonth', 'CronDayOfWeek', 'DeferralTime'];

/** The attribute that gives the job a start time, if there is one. */
export function deferredBy(job: JobMaker): string | undefined {
  return ASKS_FOR.find((attribute) => job.draft.has(attribute));
}

function setTime(job: JobMaker, command: string, attribute: string, text: string): void {
  job.setExpr(attribute, text, command);
  const attr = job.draft.get(attribute);
  if (attr?.kind === 'expr' || (attr?.kind === 'int' && attr.value >= 0)) return;
  throw job.fault(command, `${command} = ${text} is invalid, must eval to a non-negative integer.`, [], attribute);
}

/** deferral_time and the cron_ commands: when the job is to start, and how late it may start. */
export const deferral: Step = {
  name: 'deferral_time',
  run(job) {
    const time = job.param('deferral_time', 'DeferralTime');
    if (time !== undefined) setTime(job, 'deferral_time', 'DeferralTime', time);
    if (deferredBy(job) === undefined) return;
    const window = job.param('cron_window', 'CronWindow') ?? job.param('deferral_window', 'DeferralWindow');
    if (window === undefined) job.setInt('DeferralWindow', WINDOW);
    else setTime(job, 'deferral_window', 'DeferralWindow', window);
    const preparation =
      job.param('cron_prep_time', 'CronPrepTime') ?? job.param('deferral_prep_time', 'DeferralPrepTime');
    if (preparation === undefined) job.setInt('DeferralPrepTime', PREPARATION);
    else setTime(job, 'deferral_prep_time', 'DeferralPrepTime', preparation);
  },
};
