import type { AdText } from '../../index.ts';
import { lookup, unquote } from './ad.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';

const YIELDING = {
  gives: ['Name', 'Machine', 'Site'],
  drops: ['OpSys', 'Arch', 'Platform', 'LoadAv', 'Load', 'Gpus'],
};

/** `condor_status`: a line for each slot, then totals by platform. `now`: Unix seconds. */
export function slotLines(ads: readonly AdText[], now: number, width: Width): string[] {
  if (ads.length === 0) return [];
  const rows = ads.map((ad) => [
    text(ad, 'Name'),
    text(ad, 'OpSys'),
    text(ad, 'Arch'),
    text(ad, 'State'),
    text(ad, 'Activity'),
    Number(text(ad, 'LoadAvg')).toFixed(3),
    text(ad, 'Memory'),
    elapsed(now - Number(text(ad, 'EnteredCurrentActivity'))),
    text(ad, 'GryphusSite'),
  ]);
  const heads = ['Name', 'OpSys', 'Arch', 'State', 'Activity', ' LoadAv', ' Mem', ' ActvtyTime', 'Site'];
  return [...tableLines(heads, rows, width, YIELDING), '', ...totalLines(ads, width)];
}

const STATES = ['Claimed', 'Unclaimed', 'Drained', 'Unknown'] as const;

function totalLines(ads: readonly AdText[], width: Width): string[] {
  const platforms = new Map<string, AdText[]>();
  for (const ad of ads) {
    const platform = `${text(ad, 'Arch')}/${text(ad, 'OpSys')}`;
    platforms.set(platform, [...(platforms.get(platform) ?? []), ad]);
  }
  const count = (some: readonly AdText[]) => [
    some.length,
    ...STATES.map((state) => some.filter((ad) => text(ad, 'State') === state).length),
  ];
  const rows = [...platforms, ['Total', ads] as const].map(([name, some]) => [name, ...count(some).map(String)]);
  return tableLines(['', ' Total', ...STATES.map((state) => ` ${state}`)], rows, width);
}

/** `condor_status -compact`: a line for each machine. */
export function machineLines(ads: readonly AdText[], width: Width): string[] {
  const machines = ads.filter((ad) => lookup(ad, 'PartitionableSlot') === 'true');
  const rows = machines.map((ad) => [
    text(ad, 'Name').replace(/^slot1@/, ''),
    `${text(ad, 'Arch')}/${text(ad, 'OpSysAndVer')}`,
    text(ad, 'NumDynamicSlots'),
    text(ad, 'TotalCpus'),
    text(ad, 'TotalGPUs'),
    gigabytes(text(ad, 'TotalMemory')),
    text(ad, 'Cpus'),
    gigabytes(text(ad, 'Memory')),
    Number(text(ad, 'LoadAvg')).toFixed(2),
    text(ad, 'GryphusSite'),
  ]);
  const heads = ['Machine', 'Platform', ' Slots', ' Cpus', ' Gpus', ' TotalGb', ' FreCpu', ' FreeGb', ' Load', 'Site'];
  return machines.length === 0 ? [] : tableLines(heads, rows, width, YIELDING);
}

function text(ad: AdText, name: string): string {
  const found = lookup(ad, name);
  return found === undefined ? '' : (unquote(found) ?? found);
}

function gigabytes(megabytes: string): string {
  return (Number(megabytes) / 1024).toFixed(2);
}

/** `d+hh:mm:ss` */
function elapsed(seconds: number): string {
  const all = Math.max(0, Math.floor(seconds));
  const two = (part: number) => String(part).padStart(2, '0');
  return `${Math.floor(all / 86_400)}+${two(Math.floor(all / 3600) % 24)}:${two(Math.floor(all / 60) % 60)}:${two(all % 60)}`;
}
