import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { SLOT_STATES, type SlotState } from './machine-life.ts';

const state = z.enum(SLOT_STATES as [SlotState, ...SlotState[]]);

/** What a worker has to know of a slot after the worker before it died. Times are Unix seconds. */
const slotRecord = z.strictObject({
  state,
  enteredState: z.number(),
  enteredActivity: z.number(),
  /** PREEMPT was true. */
  mustLeave: z.boolean().optional(),
  /** When it was last told to checkpoint. */
  lastCheckpoint: z.number().optional(),
  /** How long it has been suspended so far. */
  suspended: z.number().optional(),
});
export type SlotRecord = z.infer<typeof slotRecord>;

const machineRecord = z.strictObject({
  /** Of the boot at which it was written: a signal or a freezer does not outlive its kernel. */
  boot: z.string(),
  /** Since when the machine has been watched for signs of its owner. */
  watchedSince: z.number(),
  slots: z.record(z.string(), slotRecord),
  /** The attempts that their users suspended. */
  byUser: z.array(z.string()),
});
export type MachineRecord = z.infer<typeof machineRecord>;

function recordFile(dir: string): string {
  return join(dir, 'machine.json');
}

/** `undefined` if there is none of this boot. */
export function readRecord(dir: string, boot: string): MachineRecord | undefined {
  try {
    const { data } = machineRecord.safeParse(JSON.parse(readFileSync(recordFile(dir), 'utf8')));
    return data?.boot === boot ? data : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Written whole, but not flushed to the disk: it has to outlive the worker, not the machine, and an owner does not wait
 * for a slow disk. Throws if the disk is full.
 */
export function writeRecord(dir: string, record: MachineRecord): void {
  const file = recordFile(dir);
  writeFileSync(`${file}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}
