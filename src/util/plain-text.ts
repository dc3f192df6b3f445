/**
 * Turns data into one line that is safe in a terminal, a mail header or a log: every control character (C0, C1, line
 * ends) becomes a blank.
 */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
}

/** How many characters of a foreign message are kept. */
const MOST_WORDS = 2000;

/** A message of a site or a worker in a form fit for an attribute: one line of limited length. */
export function sentence(message: string): string {
  return oneLine(message.slice(0, 4 * MOST_WORDS)).slice(0, MOST_WORDS);
}

/** `text` with every occurrence of these secrets replaced, for foreign messages that we are about to show. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) if (secret !== '') clean = clean.replaceAll(secret, '***');
  return clean;
}

/** `1 job`, `3 jobs`. */
export function counted(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** `3 d 4 h`, `5 h 58 min`, `12 min`, `40 s`: a duration in seconds as its two largest units. */
export function spanText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return '0 s';
  return parts
    .slice(first, whole < 600 ? first + 2 : Math.min(first + 2, 3))
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** Unix seconds as `2026-11-21 01:37 UTC`; a time beyond any calendar is shown as a number. */
export function timeText(seconds: number): string {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return `${seconds} s`;
  return `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Unix seconds as local time, `22:30`; with the date if it is not that of `now`. */
export function clockText(seconds: number, now: number): string {
  const [then, today] = [new Date(seconds * 1000), new Date(now * 1000)];
  const two = (n: number) => String(n).padStart(2, '0');
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (then.toDateString() === today.toDateString()) return time;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

const LONGEST = 400;

/** A file's text made safe for a terminal: it may be anything, even a program named by mistake. */
export function printable(text: string): string {
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return short.replaceAll(/[\p{Cc}\p{Cf}]/gu, (c) =>
    c === '\t' ? ' ' : `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/**
 * The system's reason without the details around it: the middle part of `ENOENT: no such file or directory, open 'x'`.
 */
export function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.replace(/^E[A-Z0-9]+: /, '').replace(/, [a-z]+( '.*)?$/s, '');
}
