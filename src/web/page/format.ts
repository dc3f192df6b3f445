/** `3 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function duration(seconds: number | undefined): string {
  if (seconds === undefined || !Number.isFinite(seconds)) return '–';
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

export function bytes(n: number | undefined): string {
  if (n === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = n;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export function number(n: number): string {
  return n.toLocaleString('en').replaceAll(',', '\u2009');
}

/** Making one takes a millisecond, too long for each cell of a table. */
function formats(timeZone: string | undefined): readonly [day: Intl.DateTimeFormat, time: Intl.DateTimeFormat] {
  const how = timeZone === undefined ? {} : { timeZone };
  return [
    new Intl.DateTimeFormat('sv', how),
    new Intl.DateTimeFormat('sv', { ...how, timeStyle: 'medium', hour12: false }),
  ];
}

let zone: string | undefined;
let [dayFormat, timeFormat] = formats(zone);

/** In which zone times are shown; `undefined`: the browser's. */
export function setZone(name: string | undefined): void {
  if (name === zone) return;
  zone = name;
  [dayFormat, timeFormat] = formats(zone);
}

/** `seconds`: Unix seconds; 0 and nothing are no time. */
export function when(seconds: number | undefined): string {
  if (!seconds) return '–';
  const date = new Date(seconds * 1000);
  const day = dayFormat.format(date);
  const time = timeFormat.format(date);
  return day === dayFormat.format(Date.now()) ? time : `${day} ${time}`;
}
