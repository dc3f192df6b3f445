import type { Gauge } from '../../index.ts';
import { oneLine, spanText } from '../../util/plain-text.ts';

const WIDTH = 10;

/** Plain text for a terminal: a bar that empties, the time left, the jobs; below it what is wrong and what to type. */
export function gaugeText(all: readonly Gauge[]): string {
  if (all.length === 0) return 'No credentials are configured.\n';
  const rows = all.map((one) => [
    oneLine(one.name),
    one.what,
    bar(one),
    leftText(one),
    jobsText(one),
    one.sites.map(oneLine).join(' '),
  ]);
  const head = ['NAME', 'KIND', 'FUEL', 'LEFT', 'JOBS', 'SITES'];
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => width(row[i] ?? ''))));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell + ' '.repeat((widths[i] ?? 0) - width(cell)))
      .join('  ')
      .trimEnd();
  const lines = all.flatMap((one, i) => {
    const notes =
      one.problem === undefined
        ? []
        : [`  ! ${oneLine(one.problem)}`, ...one.type.map((what) => `    ${oneLine(what)}`)];
    return [line(rows[i] ?? []), ...notes];
  });
  return `${[line(head), ...lines].join('\n')}\n`;
}

/** In characters, as a terminal counts them (but for double-width ones). */
function width(cell: string): number {
  return Array.from(cell).length;
}

function bar({ level, state }: Gauge): string {
  if (state !== 'good') return `[${'-'.repeat(WIDTH)}]`;
  if (level === undefined) return `[${'?'.repeat(WIDTH)}]`;
  const full = Math.min(WIDTH, Math.ceil(level * WIDTH));
  return `[${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}]`;
}

function leftText({ left, renews, state }: Gauge): string {
  const text = left === undefined ? 'no known end' : left === 0 ? 'ended' : spanText(left);
  return renews && state === 'good' ? `${text} (renews itself)` : text;
}

function jobsText({ waiting, there, held }: Gauge): string {
  const parts = [
    [waiting, 'waiting'],
    [there, 'at sites'],
    [held, 'held'],
  ] as const;
  return (
    parts
      .filter(([count]) => count > 0)
      .map(([count, word]) => `${count} ${word}`)
      .join(', ') || 'none'
  );
}
