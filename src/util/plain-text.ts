/** Data as one line that is safe in a terminal, a mail header or a log: every control character (C0, C1, line ends) becomes a blank. */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
}

/** Characters of somebody else's words that are kept. */
const MOST_WORDS = 2000;

/** Words of a site or a worker as they go into an attribute: one line, and not without end. */
export function sentence(message: string): string {
  return oneLine(message.slice(0, 4 * MOST_WORDS)).slice(0, MOST_WORDS);
}

/** `text` with every occurrence of these secrets replaced: for words of others that we are about to show. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) if (secret !== '') clean = clean.replaceAll(secret, '***');
  return clean;
}

/** `1 job`, `3 jobs`. */
export function counted(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? '' : 's'}`;
}

/** `3 d 4 h`, `5 h 58 min`, `12 min`, `40 s`: the two largest units of a length of time in seconds. */
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

/** Unix seconds as `2026-11-21 01:37 UTC`; a time that no calendar has is given as its number. */
export function timeText(seconds: number): string {
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime())) return `${seconds} s`;
  return `${date.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** Unix seconds as a clock on the wall here shows them, `22:30`; with the day where it is another one than that of `now`. */
export function clockText(seconds: number, now: number): string {
  const [then, today] = [new Date(seconds * 1000), new Date(now * 1000)];
  const two = (n: number) => String(n).padStart(2, '0');
  const time = `${two(then.getHours())}:${two(then.getMinutes())}`;
  if (then.toDateString() === today.toDateString()) return time;
  return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())} ${time}`;
}

const LONGEST = 400;

/** What a file says, for a terminal: it may be anything, a program that was named by mistake too. */
export function printable(text: string): string {
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  return short.replaceAll(/[\p{Cc}\p{Cf}]/gu, (c) =>
    c === '\t' ? ' ' : `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** Why the system refused, without its own ornaments: `ENOENT: no such file or directory, open 'x'` is the middle of it. */
export function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.replace(/^E[A-Z0-9]+: /, '').replace(/, [a-z]+( '.*)?$/s, '');
}
