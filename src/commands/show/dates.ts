/** Long lists have the same time in many lines. */
let last: readonly [seconds: number, text: string] = [Number.NaN, ''];

/** `11/20 23:36`, local time; Unix seconds. */
export function shortDate(seconds: number): string {
  if (seconds !== last[0]) {
    const d = new Date(seconds * 1000);
    const text = `${two(d.getMonth() + 1)}/${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
    last = [seconds, text];
  }
  return last[1];
}

/** `11/20/26 23:36:39`, local time; Unix milliseconds. */
export function longDate(ms: number): string {
  const d = new Date(ms);
  const day = `${two(d.getMonth() + 1)}/${two(d.getDate())}/${two(d.getFullYear() % 100)}`;
  return `${day} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/** `1+02:03:04`: days, hours, minutes, seconds. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds));
  const clock = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return `${Math.floor(s / 86_400)}+${clock}`;
}

/** `3 s`, `5 min`, `2 h`, `4 d`: for sentences. */
export function roughly(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86_400)} d`;
}

function two(n: number): string {
  return n < 10 ? `0${n}` : `${n}`;
}
