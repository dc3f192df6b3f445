import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { writeWhole } from '../util/private-file.ts';
import { storedOr } from '../util/stored-json.ts';

const REPAIR = z.object({
  /** Unix milliseconds. */
  at: z.number(),
  /** Absolute. */
  file: z.string(),
  /** The position of the byte that was put back, from 0. */
  byte: z.number(),
  /** What was there, and what is there now. */
  was: z.number(),
  is: z.number(),
  /** Whether the Scheduler has said so. */
  said: z.boolean(),
});
export type Repair = z.infer<typeof REPAIR>;

/** Repairs that are kept: the latest. */
const KEPT = 100;

/** Bytes of the queue's files that were put back, the latest last. */
export function repairsOf(stateDir: string): readonly Repair[] {
  try {
    return storedOr(z.array(REPAIR), readFileSync(fileOf(stateDir), 'utf8')) ?? [];
  } catch {
    return [];
  }
}

export function noteRepairs(stateDir: string, repairs: readonly Repair[]): void {
  writeWhole(fileOf(stateDir), JSON.stringify([...repairsOf(stateDir), ...repairs].slice(-KEPT)));
}

/** Those that nobody was told of, which are taken as said now. */
export function takeUnsaid(stateDir: string): readonly Repair[] {
  const all = repairsOf(stateDir);
  const unsaid = all.filter(({ said }) => !said);
  if (unsaid.length > 0) writeWhole(fileOf(stateDir), JSON.stringify(all.map((one) => ({ ...one, said: true }))));
  return unsaid;
}

export function repairText({ file, byte, was, is }: Repair): string {
  const hex = (value: number) => `0x${value.toString(16).padStart(2, '0')}`;
  return (
    `Byte ${byte} of the queue's file ${file} had changed by itself, from ${hex(is)} to ${hex(was)}; it was put back. ` +
    'The disk or the memory of this machine changes data'
  );
}

function fileOf(stateDir: string): string {
  return join(stateDir, 'redis', 'repairs');
}
