import type { CheckStep, Found, SiteStatus } from '../../index.ts';
import { tableLines } from './table.ts';
import { columns, visible, type Width, wrapped } from './width.ts';

const CONNECTION: Readonly<Record<SiteStatus['connection'], string>> = {
  unused: 'not used yet',
  up: 'up',
  down: 'does not answer',
  'needs-login': 'needs login',
  refused: 'refuses us',
};

export function siteLines(sites: readonly SiteStatus[], width: Width): string[] {
  const rows = sites.map((site) => [
    site.name,
    site.batch,
    site.url,
    CONNECTION[site.connection],
    ...[site.idle, site.queuedThere, site.running, site.unknown].map(String),
    noteOf(site),
  ]);
  const heads = ['NAME', 'BATCH', 'URL', 'CONNECTION', ' HERE', ' QUEUED', ' RUNNING', ' UNKNOWN'];
  const yielding = { gives: ['URL', 'NAME'], drops: ['URL', 'BATCH', 'UNKNOWN'] };
  const whole = tableLines([...heads, 'NOTE'], rows, undefined);
  if (width === undefined || whole.every((line) => columns(line) <= width)) return whole;
  // A note says what is wrong: it has a line of its own before it is cut.
  const [head = '', ...lines] = tableLines(heads, rows, width, yielding);
  const notes = rows.map((row) => row.at(-1) ?? '').map((note) => (note === '' ? [] : wrapped(`  ! ${note}`, width)));
  return [head, ...lines.flatMap((line, i) => [line, ...(notes[i] ?? [])])];
}

function noteOf({ words, outOfUse, learned }: SiteStatus): string {
  if (words !== undefined) return words;
  if (outOfUse !== undefined) return `out of use, tried now and then: ${outOfUse}`;
  return learned === undefined ? '' : `takes ${learned.jobs} of our jobs: ${learned.words}`;
}

/** What was learned of a site, for `site show`. */
export function mannersRows(site: SiteStatus | undefined): readonly (readonly [string, string])[] {
  if (site === undefined) return [];
  return [
    ['connection', `${CONNECTION[site.connection]}${site.words === undefined ? '' : `: ${visible(site.words)}`}`],
    ['jobs', `${site.idle} here, ${site.queuedThere} queued, ${site.running} running, ${site.unknown} unknown`],
    ...(site.learned === undefined
      ? []
      : [
          [
            'learned limit',
            `${site.learned.jobs} jobs, since ${new Date(site.learned.at).toISOString()}: ${visible(site.learned.words)}`,
          ] as const,
        ]),
    ...(site.outOfUse === undefined ? [] : [['out of use', visible(site.outOfUse)] as const]),
  ];
}

/** What of the sites keeps jobs from running, for the foot of `q`. */
export function siteNotes(sites: readonly SiteStatus[]): string[] {
  const notes = sites.flatMap((site) => {
    if (site.connection === 'up' || site.connection === 'unused') return [];
    const waiting = site.idle + site.queuedThere + site.running + site.unknown;
    if (waiting === 0) return [];
    const words = site.words === undefined ? '' : `: ${visible(site.words).replace(/\.$/, '')}`;
    const wait = waiting === 1 ? '1 job waits' : `${waiting} jobs wait`;
    const lines = [`-- Site ${site.name} ${CONNECTION[site.connection]}${words}; ${wait} for it.`];
    if (site.connection === 'needs-login') lines.push(`   → gryphus site login ${site.name}`);
    if (site.connection === 'refused') lines.push(`   → gryphus site test ${site.name}`);
    return lines;
  });
  return notes.length === 0 ? [] : [...notes, ''];
}

/** One step of `site test`, and what to mend. */
export function stepText({ step, ok, words, mend }: CheckStep): string {
  const line = `${ok ? '✓' : '✗'} ${step}: ${visible(words)}\n`;
  return mend === undefined || ok ? line : `${line}  → ${visible(mend)}\n`;
}

/** What `site add` found at a site, the one it takes first. */
export function foundLines(name: string, found: readonly Found[]): string[] {
  const [first, ...others] = found;
  if (!first) return [`${name} has no batch system that is known: jobs will be plain processes there.`];
  const state = ({ answers }: Found) => (answers ? '' : ', which gives no answer now');
  return [
    `${name} has ${first.batch}${state(first)} (${visible(first.words)}).`,
    ...others.map((other) => `It has ${other.batch}, too${state(other)}: --batch ${other.batch} would take that.`),
    ...(first.answers ? [] : ['Its jobs can be plain processes instead: --batch fork --force.']),
  ];
}
