import type { Failure, Pilot } from '../../index.ts';
import { tableLines } from './table.ts';
import { visible, type Width } from './width.ts';
import { counted } from '../../util/plain-text.ts';

/** Pilots as in `glidein list`, and a count of each kind. */
export function pilotLines(pilots: readonly Pilot[], width: Width): string[] {
  if (pilots.length === 0) return ['No glideins. Start some: gryphus glidein start --site NAME -n 10'];
  const rows = pilots.map((pilot) => [
    pilot.job,
    pilot.site,
    pilot.is,
    String(pilot.cores),
    pilot.is === 'home' || pilot.is === 'draining' ? String(pilot.busy) : '',
    timeText(pilot.age),
    pilot.left === undefined ? '' : timeText(pilot.left),
    pilot.by,
    pilot.host ?? pilot.message ?? '',
  ]);
  const counts = new Map<string, number>();
  for (const { is } of pilots) counts.set(is, (counts.get(is) ?? 0) + 1);
  const busy = pilots.reduce((sum, pilot) => sum + pilot.busy, 0);
  const cores = pilots.filter((pilot) => pilot.is === 'home').reduce((sum, pilot) => sum + pilot.cores, 0);
  return [
    ...tableLines(['JOB', 'SITE', 'IS', ' CORES', ' BUSY', ' AGE', ' LEFT', 'BY', 'HOST'], rows, width, {
      gives: ['HOST', 'SITE'],
      drops: ['BY', 'AGE'],
    }),
    '',
    `${[...counts].map(([is, count]) => `${count} ${is}`).join(', ')}; ${busy} of ${counted(cores, 'core')} busy`,
  ];
}

/** Each site's latest failure; `site`: only of this one. */
export function failureLines(all: ReadonlyMap<string, readonly Failure[]>, site: string | undefined): string[] {
  const lines = [...all].flatMap(([name, failures]) => {
    const last = failures.at(-1);
    if (last === undefined || (site !== undefined && site !== name)) return [];
    const count = failures.length === 1 ? '1 pilot' : `${failures.length} pilots`;
    return [`${name}: ${count} could not run there within the hour. The latest, ${last.job}: ${visible(last.message)}`];
  });
  return lines.length === 0 ? [] : ['', ...lines];
}

/** `4:05`, hours and minutes. */
function timeText(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}`;
}
