import { Refused } from './options.ts';
import { type SlurmJob, stateNamed } from './slurm-job.ts';
import { moment } from './slurm-jobs.ts';

/** Whose jobs sacct shows by time and state. Times are Unix seconds. */
export interface Window {
  readonly from: number;
  readonly to: number;
  readonly fits: (job: SlurmJob) => boolean;
}

export interface Asked {
  readonly start: string | undefined;
  readonly end: string | undefined;
  readonly states: string | undefined;
  /** Jobs are named. */
  readonly named: boolean;
}

/**
 * sacct's time window. Without one: all times for jobs that are named, this moment for states, today otherwise; with states
 * and one end, that moment (sacct's manual, "default time window").
 */
export function windowOf({ start, end, states: list, named }: Asked, now: number): Window {
  const states = list?.split(',').map((name) => {
    const state = stateNamed(name);
    if (state === undefined) throw new Refused(`unrecognized job state value '${name}'`, 1, 'fatal');
    return state;
  });
  const [first, last] = [start, end].map((text) => (text === undefined ? undefined : instant(text, now)));
  const at = states === undefined || named ? undefined : (first ?? last ?? now);
  const from = first ?? at ?? (named ? 0 : midnight(now));
  const to = last ?? at ?? now;
  if (from > to) throw new Refused(`Start time (${moment(from, '')}) requested is after end time (${moment(to, '')}).`);
  const fits = (job: SlurmJob): boolean => {
    const ended = job.ended ?? Infinity;
    if (states !== undefined) return states.some((state) => was(job, state, from, to));
    // Jobs that cannot start yet are shown to who names them.
    return named && start === undefined && end === undefined
      ? true
      : job.eligible !== undefined && job.eligible <= to && ended >= from;
  };
  return { from, to, fits };
}

/** Whether the job was in this state at some time between. */
function was(job: SlurmJob, state: string, from: number, to: number): boolean {
  const { eligible, started, ended = Infinity } = job;
  switch (state) {
    case 'PENDING':
      return eligible !== undefined && eligible <= to && (started ?? ended) >= from;
    case 'RUNNING':
      return started !== undefined && started <= to && ended >= from;
    case 'SUSPENDED':
    case 'COMPLETING':
      return job.state === state;
    default:
      return job.state === state && from <= ended && ended <= to;
  }
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const CLOCKS: Readonly<Record<string, string>> = { midnight: '00:00', noon: '12:00', fika: '15:00', teatime: '16:00' };

/** Slurm's times (parse_time.c): `now-2hours`, `today`, `HH:MM[:SS]`, `MMDDYY`, `MM/DD[/YY]`, `YYYY-MM-DD[THH:MM[:SS]]`. */
function instant(text: string, now: number): number {
  const low = text.toLowerCase();
  const [, sign, count, unit = 's'] = /^now(?:([+-])(\d+)([a-z]*))?$/.exec(low) ?? [];
  if (low === 'now') return now;
  if (sign !== undefined && UNITS[unit[0] ?? 's'] !== undefined)
    return now + (sign === '-' ? -1 : 1) * Number(count) * (UNITS[unit[0] ?? 's'] ?? 1);
  const today = midnight(now);
  const days: Readonly<Record<string, number>> = { today: 0, tomorrow: 1, yesterday: -1 };
  if (days[low] !== undefined) return midnight(today + (days[low] + 0.5) * 86_400);
  const clock = CLOCKS[low] ?? low;
  const time = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(clock);
  if (time) return at(new Date(today * 1000), time.slice(1), text);
  const [, date = '', hours] = /^(\d[\d./-]*)(?:[t-](\d{1,2}:\d{2}(?::\d{2})?))?$/.exec(low) ?? [];
  const day = dayOf(date, now);
  if (day === undefined) throw bad(text);
  return at(day, (hours ?? '0:0').split(':'), text);
}

/** Local midnight of `2026-11-27`, `11/27`, `11.27.26`, `112726`. */
function dayOf(date: string, now: number): Date | undefined {
  const iso = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(date);
  const other = /^(\d{1,2})[./](\d{1,2})(?:[./](\d{2}|\d{4}))?$/.exec(date) ?? /^(\d{2})(\d{2})(\d{2})$/.exec(date);
  const [, year, month, day] = iso ?? (other && ['', other[3], other[1], other[2]]) ?? [];
  if (month === undefined || day === undefined) return undefined;
  const full = year === undefined ? new Date(now * 1000).getFullYear() : Number(year) + (year.length === 2 ? 2000 : 0);
  const found = new Date(full, Number(month) - 1, Number(day));
  return found.getMonth() === Number(month) - 1 ? found : undefined;
}

function at(day: Date, clock: readonly (string | undefined)[], text: string): number {
  const [hour = 0, minute = 0, second = 0] = clock.map((part) => Number(part ?? 0));
  if (hour > 23 || minute > 59 || second > 59) throw bad(text);
  return new Date(day).setHours(hour, minute, second, 0) / 1000;
}

function bad(text: string): Refused {
  return new Refused(`Invalid time specification (pos=0): ${text}`, 1, 'bare');
}

function midnight(now: number): number {
  return new Date(now * 1000).setHours(0, 0, 0, 0) / 1000;
}
