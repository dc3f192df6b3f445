import * as z from 'zod';
import { maybe, type Read } from '../util/schema.ts';

/** `[start:end:step]` of a queue statement, as in Python; omitted parts are `undefined`. */
export const SLICE = z.strictObject({ start: maybe(z.int()), end: maybe(z.int()), step: maybe(z.int()) });
export type Slice = Read<typeof SLICE>;

/** The slice at the beginning of `text` and the text after it; `undefined` if there is none. */
export function parseSlice(text: string): { readonly slice: Slice; readonly rest: string } | undefined {
  const found = /^\[(?:\s*([+-]?\d+))?(?:(:)(?:\s*([+-]?\d+))?)?(?:(:)(?:\s*([+-]?\d+))?)?\]/.exec(text);
  if (!found) return undefined;
  const [all, start, , end, , step] = found;
  const slice = {
    ...(start === undefined ? {} : { start: Number(start) }),
    ...(end === undefined ? {} : { end: Number(end) }),
    ...(step === undefined ? {} : { step: Number(step) }),
  };
  return { slice, rest: text.slice(all.length) };
}

function bounds(slice: Slice, length: number): readonly [number, number] {
  const from = (at: number): number => (at < 0 ? at + length : at);
  return [slice.start === undefined ? 0 : from(slice.start), slice.end === undefined ? length : from(slice.end)];
}

/** How many of `length` items HTCondor expects a slice to select, before it looks at them. */
export function sliceLength(slice: Slice | undefined, length: number): number {
  if (!slice) return length;
  const [start, end] = bounds(slice, length);
  return Math.min(Math.max(Math.ceil((end - start) / (slice.step ?? 1)), 0), length);
}

/**
 * The index of the `n`th selected item (from 0). It can be outside the list: HTCondor counts from the slice's start
 * even if that is before the first or after the last item. `undefined` after the end.
 */
export function sliceIndex(slice: Slice | undefined, n: number, length: number): number | undefined {
  if (!slice) return n < length ? n : undefined;
  const [start, end] = bounds(slice, length);
  const index = start + n * (slice.step ?? 1);
  return index >= start && index < end ? index : undefined;
}
