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

let zone: string | undefined;

/** In which zone times are shown; `undefined`: the browser's. */
export function setZone(name: string | undefined): void {
  zone = name;
}

/** `seconds`: Unix seconds; 0 and nothing are no time. */
export function when(seconds: number | undefined): string {
  if (!seconds) return '–';
  const date = new Date(seconds * 1000);
  const how = { hour12: false, ...(zone === undefined ? {} : { timeZone: zone }) };
  const day = date.toLocaleDateString('sv', how);
  const time = date.toLocaleTimeString('sv', how);
  return day === new Date().toLocaleDateString('sv', how) ? time : `${day} ${time}`;
}
