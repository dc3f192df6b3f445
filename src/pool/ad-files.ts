import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { jobAdLines, oneLine } from '../job/ad-lines.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import type { FromCentralManager } from './wire.ts';

/** The ads that a program finds in its sandbox, as HTCondor names the files. */
export const AD_FILES = { job: '.job.ad', machine: '.machine.ad' } as const;

export const AD_NAMES: ReadonlySet<string> = new Set(Object.values(AD_FILES));

type Start = Extract<FromCentralManager, { readonly t: 'start' }>;

/** Puts the job's ad there, and its slot's. */
export function writeAds(work: string, { ad = {}, slot, size }: Start, machine: AttrTexts): void {
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
  write(join(work, AD_FILES.job), jobAdLines(Object.entries(ad)));
  write(
    join(work, AD_FILES.machine),
    Object.entries(offered).flatMap(([name, text]) => (text === null ? [] : [`${name} = ${oneLine(text)}`])),
  );
}

function write(path: string, lines: readonly string[]): void {
  const sorted = lines.toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  writeFileSync(path, `${sorted.join('\n')}\n`, { mode: 0o600 });
}
