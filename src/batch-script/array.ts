import type { ArrayIndices } from './model.ts';
import { allIndices, rangeCount } from './values.ts';

/** An array's job has the number `cluster × 10⁷ + index`: unique, whole, and both can be read from it. */
export const JOB_NUMBERS = 10_000_000;

/** The macros of a job of an array. */
export function indexRows(array: ArrayIndices): string[] {
  const [only] = array.ranges;
  const regular = array.ranges.length === 1 && only !== undefined;
  return [
    // Indices in one range are calculated, so that an array of a million needs no list.
    ...(regular
      ? [`array_number = ${only.from} + $(Process) * ${only.step}`, 'array_index = $INT(array_number)']
      : ['array_number = $(array_index)']),
    `array_job = $(Cluster) * ${JOB_NUMBERS} + $(array_index)`,
    'array_tenth = $(array_index) % 10',
    '+GryphusArrayTask = $(array_index)',
    `+GryphusArray = "${printIndices(array)}"`,
    ...(array.limit === undefined ? [] : [`max_materialize = ${array.limit}`]),
  ];
}

export function queueStatement(array: ArrayIndices | undefined): string {
  if (array === undefined) return 'queue';
  const [only] = array.ranges;
  if (array.ranges.length === 1 && only !== undefined) return `queue ${rangeCount(only)}`;
  return `queue array_index in (${allIndices(array).join(' ')})`;
}

/** As systems print it: `1-10:2,15%4`. */
export function printIndices({ ranges, limit }: ArrayIndices): string {
  const list = ranges.map(({ from, to, step }) =>
    from === to ? `${from}` : `${from}-${to}${step === 1 ? '' : `:${step}`}`,
  );
  return `${list.join(',')}${limit === undefined ? '' : `%${limit}`}`;
}
