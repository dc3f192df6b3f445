import type { CredentialStatus } from '../../index.ts';
import { oneLine, spanText } from '../../util/plain-text.ts';
import { tableLines } from './table.ts';
import { type Width, wrapped } from './width.ts';

const WIDTH = 10;

/** Plain text for a terminal: a shrinking bar, the time left, the jobs; below it, what is wrong and what to type. */
export function credentialStatusText(all: readonly CredentialStatus[], width: Width): string {
  if (all.length === 0) return 'No credentials are configured.\n';
  const rows = all.map((one) => [
    oneLine(one.name),
    one.what,
    bar(one),
    leftText(one),
    jobsText(one),
    one.sites.map(oneLine).join(' '),
  ]);
  const [head = '', ...table] = tableLines(['NAME', 'KIND', 'FUEL', 'LEFT', 'JOBS', 'SITES'], rows, width, {
    gives: ['SITES', 'NAME'],
    drops: ['KIND', 'SITES'],
  });
  const lines = all.flatMap((one, i) => {
    const notes =
      one.problem === undefined
        ? []
        : [...wrapped(`  ! ${oneLine(one.problem)}`, width), ...one.type.map((what) => `    ${oneLine(what)}`)];
    return [table[i] ?? '', ...notes];
  });
  return `${[head, ...lines].join('\n')}\n`;
}

function bar({ level, state }: CredentialStatus): string {
  if (state !== 'good') return `[${'-'.repeat(WIDTH)}]`;
  if (level === undefined) return `[${'?'.repeat(WIDTH)}]`;
  const full = Math.min(WIDTH, Math.ceil(level * WIDTH));
  return `[${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}]`;
}

function leftText({ left, renews, state }: CredentialStatus): string {
  const text = left === undefined ? 'no known end' : left === 0 ? 'ended' : spanText(left);
  return renews && state === 'good' ? `${text} (renews itself)` : text;
}

function jobsText({ waiting, there, held }: CredentialStatus): string {
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
