import type { JobView } from '../../index.ts';
import { numberOf, stringOf } from './ad.ts';
import { duration, shortDate } from './dates.ts';
import { command, letter, NARROW } from './q-rows.ts';
import { cut, padEnd, type Width } from './width.ts';

const HEAD = ' ID          OWNER            SUBMITTED   RUN_TIME   ST   COMPLETED CMD';

/** The heads of `condor_history`; without the owner on a narrow terminal. */
export function historyHead(width: Width): string {
  return cut(owned(width) ? HEAD : HEAD.slice(0, 13) + HEAD.slice(28), width);
}

function owned(width: Width): boolean {
  return width === undefined || width >= NARROW;
}

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
  const owner = owned(width) ? `${padEnd(stringOf(ad, 'Owner') ?? '?', 14)} ` : '';
  return cut(`${`${id.cluster}.${id.proc}`.padEnd(12)} ${owner}${dates} ${end} ${command(ad)}`, width);
}
