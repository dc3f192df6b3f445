import type { QueuePlan } from './queue-items.ts';
import { splitRow } from './rows.ts';
import { sliceIndex, sliceLength } from './slice.ts';

/**
 * The item of a row, by its number in the whole list; -1 for the one empty item of a slice that begins outside the
 * list.
 */
function itemOf(plan: QueuePlan, row: number): number | undefined {
  const length = plan.items?.length ?? 0;
  const index = sliceIndex(plan.slice, row, length);
  if (index === undefined) return undefined;
  if (index >= 0 && index < length) return index;
  return row === 0 ? -1 : undefined;
}

/** How many rows of the list make jobs. */
export function countRows(plan: QueuePlan): number {
  const { items, slice } = plan;
  if (!items) return 1;
  if (sliceLength(slice, items.length) === 0) return 0;
  if (!slice) return items.length;
  let rows = 0;
  while (itemOf(plan, rows) !== undefined) rows++;
  return rows;
}

/** A job's place in its queue statement. */
export interface PlanStep {
  readonly row: number;
  /** $(ItemIndex): the row's number in the whole list. */
  readonly item: number;
  /** $(Step): the number of the job within the row. */
  readonly step: number;
}

/** The place of a statement's `n`th job (from 0). */
export function planStep(plan: QueuePlan, n: number): PlanStep {
  const row = Math.floor(n / plan.count);
  const index = plan.items ? itemOf(plan, row) : row;
  const start = plan.slice?.start ?? 0;
  const outside = start < 0 ? start + (plan.items?.length ?? 0) : start;
  return { row, item: index === undefined || index < 0 ? outside : index, step: n % plan.count };
}

/** The loop variables of a row. An empty row has those of the row before it. */
export function rowValues(plan: QueuePlan, row: number): readonly (readonly [name: string, value: string])[] {
  const { items, vars, table } = plan;
  if (!items) return [];
  for (let at = row; at >= 0; at--) {
    const index = itemOf(plan, at);
    if (index === undefined || index < 0) break;
    const values = splitRow(items[index] ?? '', vars.length, table);
    if (values.length > 0) return vars.map((name, i) => [name, values[i] ?? ''] as const);
  }
  return vars.map((name) => [name, ''] as const);
}
