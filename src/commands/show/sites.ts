import type { CheckStep, FoundBatchSystem, SiteRecord, SiteStatus } from '../../index.ts';
import { counted, spanText, timeText } from '../../util/plain-text.ts';
import { tableLines } from './table.ts';
import { columns, visible, type Width, wrapped } from './width.ts';

const CONNECTION: Readonly<Record<SiteStatus['connection'], string>> = {
  unused: 'not used yet',
  up: 'up',
  down: 'does not answer',
  'needs-login': 'needs login',
  refused: 'cannot be used',
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
  // A note says what is wrong, so it gets a line of its own rather than being cut.
  const [head = '', ...lines] = tableLines(heads, rows, width, yielding);
  const notes = rows.map((row) => row.at(-1) ?? '').map((note) => (note === '' ? [] : wrapped(`  ! ${note}`, width)));
  return [head, ...lines.flatMap((line, i) => [line, ...(notes[i] ?? [])])];
}

function noteOf({ message, outOfUse, learned }: SiteStatus): string {
  if (message !== undefined) return message;
  if (outOfUse !== undefined) return `out of use, tried now and then: ${outOfUse}`;
  return learned === undefined ? '' : `takes ${learned.jobs} of our jobs: ${learned.message}`;
}

const SHELL_WORD = /^[\w@%+=:,./-]+$/;

/** A site's settings under the names of its file. */
export function settingRows(site: SiteRecord): readonly (readonly [string, string])[] {
  const { limits, glidein } = site;
  const seconds = (value: number | undefined): string => (value === undefined ? '-' : spanText(value));
  const text = (value: string | number | undefined): string => (value === undefined ? '-' : String(value));
  const words = site.extraArgs.map((word) => (SHELL_WORD.test(word) ? word : JSON.stringify(word)));
  return [
    ['name', site.name],
    ['url', site.url],
    ['batch', site.batch],
    ['transport', site.transport],
    ['prelude', text(site.prelude)],
    ['scratch', text(site.scratch)],
    ['queue', text(site.queue)],
    ['project', text(site.project)],
    ['extra_args', words.join(' ') || '-'],
    ['walltime', seconds(site.walltime)],
    ['urls', site.urls],
    ['cost', text(site.cost)],
    ['credential', text(site.credential)],
    ['allocation_end', site.allocationEnd === undefined ? '-' : timeText(site.allocationEnd)],
    ['limits.queued', `${counted(limits.queued, 'job')} of ours in its queue, waiting and running`],
    ['limits.running', limits.running === undefined ? '-' : `${limits.running} at once`],
    ['limits.submits_per_minute', text(limits.submitsPerMinute)],
    ['limits.poll_min', `${seconds(limits.pollMin)} between polls of its queue, at least`],
    ['limits.poll_max', `${seconds(limits.pollMax)} when nothing changes there`],
    ['glidein.max', text(glidein.max)],
    ['glidein.cores', text(glidein.cores)],
    ['glidein.memory', glidein.memoryMb === undefined ? '-' : `${glidein.memoryMb} MB`],
    ['glidein.walltime', seconds(glidein.walltime)],
    ['glidein.scratch', glidein.scratch],
  ];
}

/** What was learned about a site, for `site show`. */
export function backoffRows(site: SiteStatus | undefined): readonly (readonly [string, string])[] {
  if (site === undefined) return [];
  return [
    ['connection', `${CONNECTION[site.connection]}${site.message === undefined ? '' : `: ${visible(site.message)}`}`],
    ['jobs', `${site.idle} here, ${site.queuedThere} queued, ${site.running} running, ${site.unknown} unknown`],
    ...(site.learned === undefined
      ? []
      : [
          [
            'learned limit',
            `${counted(site.learned.jobs, 'job')}, since ${timeText(site.learned.at / 1000)}; it refused more: ${visible(site.learned.message)}`,
          ] as const,
        ]),
    ...(site.outOfUse === undefined
      ? []
      : [['out of use', `${visible(site.outOfUse)}${nextTry(site.nextTry)}`] as const]),
  ];
}

function nextTry(at: number | undefined): string {
  return at === undefined ? '' : `; the next trial job goes there not before ${timeText(at / 1000)}`;
}

/** Site problems that keep jobs from running, for the end of `q`. */
export function siteNotes(sites: readonly SiteStatus[]): string[] {
  const notes = sites.flatMap((site) => {
    if (site.connection === 'up' || site.connection === 'unused') return [];
    const waiting = site.idle + site.queuedThere + site.running + site.unknown;
    if (waiting === 0) return [];
    const message = site.message === undefined ? '' : `: ${visible(site.message).replace(/\.$/, '')}`;
    const wait = waiting === 1 ? '1 job waits' : `${waiting} jobs wait`;
    const lines = [`-- Site ${site.name} ${CONNECTION[site.connection]}${message}; ${wait} for it.`];
    if (site.connection === 'needs-login') lines.push(`   → gryphus site login ${site.name}`);
    if (site.connection === 'refused') lines.push(`   → gryphus site test ${site.name}`);
    return lines;
  });
  return notes.length === 0 ? [] : [...notes, ''];
}

/** One step of `site test`, with its remedy. */
export function stepText({ step, ok, message, remedy }: CheckStep): string {
  const line = `${ok ? '✓' : '✗'} ${step}: ${visible(message)}\n`;
  return remedy === undefined || ok ? line : `${line}  → ${visible(remedy)}\n`;
}

/** What `site add` found at a site, the one it would use first. */
export function foundLines(name: string, found: readonly FoundBatchSystem[]): string[] {
  const [first, ...others] = found;
  if (!first) return [`${name} has no batch system that Gryphus knows: jobs will run there as plain processes.`];
  const state = ({ answers }: FoundBatchSystem) => (answers ? '' : ', which does not answer now');
  return [
    `${name} has ${first.batch}${state(first)} (${visible(first.message)}).`,
    ...others.map((other) => `It also has ${other.batch}${state(other)}: --batch ${other.batch} would use that.`),
    ...(first.answers ? [] : ['Its jobs can be plain processes instead: --batch fork --force.']),
  ];
}
