import { join } from 'node:path';
import { jobAdLine, jobAdLines, lineText } from '../../job/ad-lines.ts';
import type { AttrTexts } from '../../job/attrs.ts';
import { quoted } from '../../job/values.ts';
import { sizeTexts } from '../wire/ads.ts';
import type { FromCentralManager } from '../wire/wire.ts';
import { overwrite } from './reused-sandbox.ts';

/** The ads that a program finds in its sandbox, under HTCondor's file names. */
export const AD_FILES = { job: '.job.ad', machine: '.machine.ad' } as const;

export const AD_NAMES: ReadonlySet<string> = new Set(Object.values(AD_FILES));

type Start = Extract<FromCentralManager, { readonly t: 'start' }>;

/** Writes the job's ad and its slot's ad into the sandbox. `kind`: the ad of its kind. */
export function writeAds(work: string, { ad = {}, slot, size }: Start, kind: JobAdText, machine: AttrTexts): void {
  overwrite(join(work, AD_FILES.job), Buffer.from(kind.with(ad)));
  overwrite(join(work, AD_FILES.machine), Buffer.from(slotText(machine, slot, size)));
}

/** The ad of a kind of jobs as the text of a file, from which those of its jobs differ in a few lines. */
export class JobAdText {
  readonly texts: AttrTexts;
  /** Sorted, with the attributes' names in lower case. */
  #lines: (readonly [name: string, line: string])[] | undefined;

  constructor(texts: AttrTexts) {
    this.texts = texts;
  }

  /** With these attributes instead; `null`: without. */
  with(own: AttrTexts): string {
    this.#lines ??= sorted(jobAdLines(Object.entries(this.texts))).map(([low, line]) => [nameIn(low), line]);
    const changed = new Map(Object.entries(own).map(([name, text]) => [name.toLowerCase(), jobAdLine(name, text)]));
    changed.delete('jobstatus');
    let text = '';
    for (const [name, line] of this.#lines) {
      const other = changed.get(name);
      if (!changed.delete(name)) text += `${line}\n`;
      else if (other !== undefined) text += `${other}\n`;
    }
    // The kind has no such line: where it belongs depends on the others.
    if ([...changed.values()].some((line) => line !== undefined))
      return textOf(jobAdLines(Object.entries({ ...this.texts, ...own })));
    return text;
  }
}

function nameIn(line: string): string {
  return line.slice(0, line.indexOf(' ='));
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
    ...sizeTexts(machine, size),
  };
  return Object.entries(offered).flatMap(([name, text]) => (text === null ? [] : [`${name} = ${lineText(text)}`]));
}

function textOf(lines: readonly string[]): string {
  return sorted(lines)
    .map(([, line]) => `${line}\n`)
    .join('');
}

function sorted(lines: readonly string[]): (readonly [low: string, line: string])[] {
  return lines.map((line) => [line.toLowerCase(), line] as const).sort(([a], [b]) => (a < b ? -1 : 1));
}
