import type { JobView } from '../../index.ts';
import { OUTCOME_ATTRIBUTES, outcomeOf } from '../../job/outcome.ts';
import { numberOf, stringOf } from './ad.ts';
import { duration, shortDate } from './dates.ts';
import { command, letter, NARROW } from './q-rows.ts';
import { cut, padEnd, type Width } from './width.ts';

const HEAD = ' ID          OWNER            SUBMITTED   RUN_TIME   ST   COMPLETED EXIT CMD';

/** The headings of `condor_history` plus the exit status; without the owner on a narrow terminal. */
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
  ...OUTCOME_ATTRIBUTES,
] as const;

/** A line of `condor_history`, with the job's exit status, or S and the signal. */
export function historyLine({ id, state, ad }: JobView, width: Width): string {
  const done = numberOf(ad, 'CompletionDate') ?? 0;
  const dates = `${shortDate(numberOf(ad, 'QDate') ?? 0)} ${duration(numberOf(ad, 'RemoteWallClockTime') ?? 0).padStart(12)}`;
  const end = `${letter(undefined, ad).padEnd(2)} ${(done > 0 ? shortDate(done) : '').padEnd(11)}`;
  const owner = owned(width) ? `${padEnd(stringOf(ad, 'Owner') ?? '?', 14)} ` : '';
  return cut(
    `${`${id.cluster}.${id.proc}`.padEnd(12)} ${owner}${dates} ${end} ${exit(state, ad).padEnd(4)} ${command(ad)}`,
    width,
  );
}

function exit(state: JobView['state'], ad: JobView['ad']): string {
  const outcome = outcomeOf(state, { get: (name) => ad[name] });
  if (outcome.is === 'exited') return String(outcome.code);
  return outcome.is === 'killed' ? `S${outcome.signal}` : '-';
}
