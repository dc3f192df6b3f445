import type { Renewal, WatchConfig, Watched } from './model.ts';

type Pace = Pick<WatchConfig, 'renewBefore' | 'retry' | 'longestRetry' | 'renewTimeout'>;

/**
 * When a renewal is due: at half of the life, or `renewBefore` the end if that is later. A small individual jitter
 * keeps many agents from asking one server at the same moment. At once if the credential cannot be used; `undefined`:
 * never without the user.
 */
export function renewalDue(
  credential: Watched,
  usable: boolean,
  memory: Renewal,
  now: number,
  pace: Pace,
): number | undefined {
  if (!credential.renews) return undefined;
  const { start, end } = credential;
  if (usable && end === undefined) return undefined;
  const before =
    start === undefined || end === undefined ? pace.renewBefore : Math.min(pace.renewBefore, (end - start) / 2);
  const early = (before / 10) * fraction(`${credential.name} ${credential.version}`);
  const natural = usable && end !== undefined ? Math.floor(end - before - early) : now;
  const due = Math.max(natural, notBefore(memory, now, pace));
  const { since } = memory;
  // A start in the future means that the clock was set back, which must not delay the renewal.
  const busy = since !== undefined && since <= now && now < since + pace.renewTimeout;
  return busy ? Math.max(due, since + pace.renewTimeout) : due;
}

/** If the clock was set back, a retry must still not wait longer than the longest pause. */
function notBefore({ next }: Renewal, now: number, pace: Pace): number {
  return next === undefined || next - now > pace.longestRetry ? now : next;
}

/** What to remember after an attempt; `problem` is undefined if the credential now ends later than before. */
export function renewed(memory: Renewal, credential: Watched, now: number, pace: Pace, problem?: string): Renewal {
  if (problem === undefined) return { failures: 0 };
  const failures = memory.failures + 1;
  const life =
    credential.start === undefined || credential.end === undefined ? undefined : credential.end - credential.start;
  const longest = Math.min(pace.longestRetry, life === undefined ? pace.longestRetry : Math.max(1, life / 8));
  const pause = Math.min(longest, pace.retry * 2 ** Math.min(failures - 1, 20));
  const jitter = 0.5 + 0.5 * fraction(`${credential.name} ${failures} ${now}`);
  return { failures, next: now + Math.max(1, Math.round(pause * jitter)), problem };
}

/** A number in [0, 1) that looks random but is always the same for the same text (FNV-1a). */
function fraction(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32;
}
