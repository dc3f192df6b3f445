import { join } from 'node:path';
import { jobAdLines, lineText } from '../../job/ad-lines.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import type { FromCentralManager } from '../wire/wire.ts';
import { overwrite } from './reused-sandbox.ts';

/** The ads that a program finds in its sandbox, under HTCondor's file names. */
export const AD_FILES = { job: '.job.ad', machine: '.machine.ad' } as const;

export const AD_NAMES: ReadonlySet<string> = new Set(Object.values(AD_FILES));

type Start = Extract<FromCentralManager, { readonly t: 'start' }>;

/** Writes the job's ad and its slot's ad into the sandbox. */
export function writeAds(work: string, { ad = {}, slot, size }: Start, machine: AttrTexts): void {
  overwrite(join(work, AD_FILES.job), Buffer.from(textOf(jobAdLines(Object.entries(ad)))));
  overwrite(join(work, AD_FILES.machine), Buffer.from(slotText(machine, slot, size)));
}

/** The texts of each machine's slot ads, which many jobs share. */
const SLOTS = new WeakMap<AttrTexts, Map<string, string>>();

function slotText(machine: AttrTexts, slot: string | undefined, size: Start['size']): string {
  const known = SLOTS.get(machine) ?? new Map<string, string>();
  SLOTS.set(machine, known);
  const which = JSON.stringify([slot, size]);
  const text = known.get(which) ?? textOf(slotLines(machine, slot, size));
  if (known.size > MOST_SLOTS) known.clear();
  known.set(which, text);
  return text;
}

const MOST_SLOTS = 1000;

function slotLines(machine: AttrTexts, slot: string | undefined, size: Start['size']): string[] {
  const offered = {
    ...machine,
    ...(slot === undefined ? {} : { Name: quoted(slot) }),
    SlotType: quoted('Dynamic'),
    DynamicSlot: 'true',
    PartitionableSlot: 'false',
    Cpus: String(size.cpus),
    Memory: String(size.memoryMb),
    Disk: String(size.diskKb),
    GPUs: String(size.gpus),
  };
  return Object.entries(offered).flatMap(([name, text]) => (text === null ? [] : [`${name} = ${lineText(text)}`]));
}

function textOf(lines: readonly string[]): string {
  const sorted = lines.map((line) => [line.toLowerCase(), line] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([, line]) => `${line}\n`).join('');
}
