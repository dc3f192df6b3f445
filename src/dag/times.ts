const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const;

function two(n: number): string {
  return n < 10 ? `0${n}` : String(n);
}

function clock(at: Date): string {
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** `11/21/26 00:40:28` in local time: the time stamps of DAGMan's log. `ms` is Unix milliseconds. */
export function logTime(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getMonth() + 1)}/${two(at.getDate())}/${two(at.getFullYear() % 100)} ${clock(at)}`;
}

/** `Sat Nov 21 00:40:40 2026` in local time: ctime(3) without its newline. */
export function ctime(ms: number): string {
  const at = new Date(ms);
  const day = String(at.getDate()).padStart(2);
  return `${DAYS[at.getDay()]} ${MONTHS[at.getMonth()]} ${day} ${clock(at)} ${at.getFullYear()}`;
}

/** Whole seconds since the epoch. */
export function unixSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}
