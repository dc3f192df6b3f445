import type { AdText } from '../../index.ts';
import { unquote } from '../../job/json-ads.ts';
import { lookup } from './ad.ts';
import { duration } from './dates.ts';
import { tableLines } from './table.ts';
import type { Width } from './width.ts';
import { counted } from '../../util/plain-text.ts';

const YIELDING = {
  gives: ['Name', 'Machine', 'Site'],
  drops: ['OpSys', 'Arch', 'Platform', 'LoadAv', 'Load', 'Gpus'],
};

/** `condor_status`: a line for each slot, then totals by platform. `now`: Unix seconds. */
export function slotLines(ads: readonly AdText[], now: number, width: Width): string[] {
  if (ads.length === 0) return [];
  const rows = ads.map((ad) => [
    ...platform(ad),
    text(ad, 'State'),
    text(ad, 'Activity'),
    load(ad),
    text(ad, 'Memory'),
    duration(now - Number(text(ad, 'EnteredCurrentActivity'))),
    text(ad, 'GryphusSite'),
  ]);
  const heads = ['Name', 'OpSys', 'Arch', 'State', 'Activity', ' LoadAv', ' Mem', ' ActvtyTime', 'Site'];
  return [...tableLines(heads, rows, width, YIELDING), '', ...totalLines(ads, width), ...ownerLines(ads)];
}

/** Which machines their owners have, and what is wrong with their policies. */
function ownerLines(ads: readonly AdText[]): string[] {
  const machines = ads.filter((ad) => lookup(ad, 'PartitionableSlot') === 'true');
  const lines = machines.flatMap((ad) =>
    ['GryphusOwner', 'GryphusPolicyTrouble'].flatMap((name) =>
      text(ad, name) === '' ? [] : [`${text(ad, 'Name')}: ${text(ad, name)}`],
    ),
  );
  for (const ad of machines) {
    const held = Number(text(ad, 'GryphusHeldSlots'));
    if (held > 0) lines.push(`${text(ad, 'Name')}: ${counted(held, 'slot')} held for ${text(ad, 'GryphusHeldFor')}`);
  }
  const dedicated = ads.filter((ad) => text(ad, 'Scheduler') !== '').length;
  if (dedicated > 0) lines.push(`${counted(dedicated, 'slot')} in use by parallel jobs`);
  return lines.length === 0 ? [] : ['', ...lines];
}

/** `condor_status -claimed`: the user and the job of each slot. */
export function claimedLines(ads: readonly AdText[], now: number, width: Width): string[] {
  if (ads.length === 0) return [];
  const rows = ads.map((ad) => [
    ...platform(ad),
    load(ad),
    text(ad, 'RemoteUser'),
    text(ad, 'JobId'),
    text(ad, 'Activity'),
    duration(now - Number(text(ad, 'EnteredCurrentActivity'))),
    text(ad, 'GryphusSite'),
  ]);
  const heads = ['Name', 'OpSys', 'Arch', ' LoadAv', 'RemoteUser', ' Job', 'Activity', ' ActvtyTime', 'Site'];
  return [...tableLines(heads, rows, width, YIELDING), '', ...totalLines(ads, width)];
}

/** `condor_status -state`: how long each slot has been in its state. */
export function stateLines(ads: readonly AdText[], now: number, width: Width): string[] {
  if (ads.length === 0) return [];
  const rows = ads.map((ad) => [
    text(ad, 'Name'),
    text(ad, 'Cpus'),
    text(ad, 'Memory'),
    load(ad),
    text(ad, 'State'),
    duration(now - Number(text(ad, 'EnteredCurrentState'))),
    text(ad, 'Activity'),
    duration(now - Number(text(ad, 'EnteredCurrentActivity'))),
    text(ad, 'GryphusSite'),
  ]);
  const heads = ['Name', ' Cpu', ' Mem', ' LoadAv', 'State', ' StateTime', 'Activ', ' ActvtyTime', 'Site'];
  return [...tableLines(heads, rows, width, YIELDING), '', ...totalLines(ads, width)];
}

/** HTCondor's slot states in its order, and the headings that the totals use for them. */
const STATES = ['Owner', 'Claimed', 'Unclaimed', 'Matched', 'Preempting', 'Drained', 'Backfill', 'BkIdle'] as const;
const HEADS: Readonly<Record<string, string>> = { Drained: 'Drain' };
/** The state of slots whose worker is away but expected back. */
const AWAY = 'Unknown';

/** `condor_status -totals`: by platform, and overall. */
export function totalLines(ads: readonly AdText[], width: Width): string[] {
  const platforms = new Map<string, AdText[]>();
  for (const ad of ads) {
    const name = `${text(ad, 'Arch')}/${text(ad, 'OpSys')}`;
    platforms.set(name, [...(platforms.get(name) ?? []), ad]);
  }
  const states = ads.some((ad) => text(ad, 'State') === AWAY) ? [...STATES, AWAY] : STATES;
  const count = (some: readonly AdText[]) => [
    some.length,
    ...states.map((state) => some.filter((ad) => text(ad, 'State') === state).length),
  ];
  const rows = [...platforms, ['Total', ads] as const].map(([name, some]) => [name, ...count(some).map(String)]);
  const drops = ['BkIdle', 'Backfill', 'Matched', 'Owner', 'Preempting'];
  return tableLines(['', ' Total', ...states.map((state) => ` ${HEADS[state] ?? state}`)], rows, width, { drops });
}

/** All slots in one line; `undefined` if there are none. */
export function poolLine(ads: readonly AdText[]): string | undefined {
  if (ads.length === 0) return undefined;
  const machines = ads.filter((ad) => lookup(ad, 'PartitionableSlot') === 'true').length;
  const cpus = (state: string) => {
    const of = ads.filter((ad) => isState(ad, state));
    return of.reduce((sum, ad) => sum + Number(text(ad, 'Cpus')), 0);
  };
  const cores = `${counted(cpus('Claimed'), 'core')} claimed, ${cpus('Unclaimed')} unclaimed`;
  return `${counted(machines, 'machine')}; ${cores}`;
}

/** Whether this is the name of the slot or of its machine. */
export function isNamed(ad: AdText, name: string): boolean {
  const slot = text(ad, 'Name');
  return name === slot || slot.endsWith(`@${name}`) || name === text(ad, 'Machine');
}

export function isState(ad: AdText, state: string): boolean {
  return text(ad, 'State') === state;
}

function platform(ad: AdText): string[] {
  return [text(ad, 'Name'), text(ad, 'OpSys'), text(ad, 'Arch')];
}

function load(ad: AdText): string {
  return Number(text(ad, 'LoadAvg')).toFixed(3);
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
  return machines.length === 0 ? [] : [...tableLines(heads, rows, width, YIELDING), '', ...totalLines(ads, width)];
}

function text(ad: AdText, name: string): string {
  const found = lookup(ad, name);
  return found === undefined ? '' : (unquote(found) ?? found);
}

function gigabytes(megabytes: string): string {
  return (Number(megabytes) / 1024).toFixed(2);
}
