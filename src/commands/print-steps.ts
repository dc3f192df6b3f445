import type { CheckStep } from '../index.ts';
import { Out } from './command.ts';
import { JsonList } from './json-list.ts';
import { stepText } from './show/sites.ts';

/** Prints each step of a check when it is done; sets exit status 1 if one failed. */
export async function printSteps(
  steps: AsyncIterable<CheckStep>,
  { json, jsonl }: { readonly json: boolean; readonly jsonl: boolean },
): Promise<void> {
  const out = new Out();
  const list = json || jsonl ? new JsonList(out, jsonl) : undefined;
  for await (const step of steps) {
    if (list) list.add(JSON.stringify(step));
    else out.text(stepText(step));
    await out.flush();
    if (!step.ok) process.exitCode = 1;
  }
  list?.end();
  await out.flush();
}
