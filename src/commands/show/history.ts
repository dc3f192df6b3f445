import type { JobView } from '../../index.ts';
import { numberOf, stringOf } from './ad.ts';
import { duration, shortDate } from './dates.ts';
import { command, letter } from './q-rows.ts';
import { cut, padEnd, type Width } from './width.ts';

export const HISTORY_HEAD = ' ID          OWNER            SUBMITTED   RUN_TIME   ST   COMPLETED CMD';

export const HISTORY_ATTRIBUTES = [
  'ClusterId',
  'ProcId',
  'Owner',
  'JobStatus',
  'QDate',
  'RemoteWallClockTime',
  'CompletionDate',
  'Cmd',
  'Args',
  'Arguments',
] as const;

/** One line of `condor_history`. */
export function historyLine({ id, ad }: JobView, width: Width): string {
  const done = numberOf(ad, 'CompletionDate') ?? 0;
  const dates = `${shortDate(numberOf(ad, 'QDate') ?? 0)} ${duration(numberOf(ad, 'RemoteWallClockTime') ?? 0).padStart(12)}`;
  const end = `${letter(undefined, ad).padEnd(2)} ${(done > 0 ? shortDate(done) : '').padEnd(11)}`;
  const owner = padEnd(stringOf(ad, 'Owner') ?? '?', 14);
  return cut(`${`${id.cluster}.${id.proc}`.padEnd(12)} ${owner} ${dates} ${end} ${command(ad)}`, width);
}
