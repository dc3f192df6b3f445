import type { AdText } from '../../index.ts';
import { unquote } from '../../job/json-ads.ts';
import { lookup } from './ad.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

type Column = readonly [head: string, attribute: string, show?: (text: string) => string];

const COLUMNS: readonly Column[] = [
  ['Name', 'Name'],
  ['OpSys', 'OpSys'],
  ['Arch', 'Arch'],
  ['Batch', 'Batch'],
  ['State', 'Connection'],
  [' Cpus', 'TotalCpus'],
  [' Free', 'FreeCpus'],
  [' Here', 'JobsHere'],
  [' Queued', 'JobsQueued'],
  [' Run', 'JobsRunning'],
  [' Wait', 'MeanWait', seconds],
  [' RunTime', 'MeanRunTime', seconds],
  [' Failed', 'RecentFailures'],
  [' Cost', 'Cost'],
];

/** The sites in the form in which `condor_status` lists machines; a dash means unknown. */
export function siteAdLines(ads: readonly AdText[], width: Width): string[] {
  const rows = ads.map((ad) =>
    COLUMNS.map(([, attribute, show = plain]) => {
      const text = lookup(ad, attribute);
      return text === undefined ? '-' : show(text);
    }),
  );
  return tableLines(
    COLUMNS.map(([head]) => head),
    rows,
    width,
    { gives: ['Name'], drops: ['OpSys', 'Arch', 'Failed', 'Cost', 'Here', 'Wait'] },
  );
}

function plain(text: string): string {
  return unquote(text) ?? text;
}

/** `mm:ss`, with hours if there are any. */
function seconds(text: string): string {
  const all = Math.round(Number(text));
  const two = (part: number) => String(part).padStart(2, '0');
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
}
