import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import { maybe } from '../util/schema.ts';

/** A place in a submit description; lines count from 1. */
export interface SourcePlace {
  readonly file: string;
  readonly line: number;
  /** The include statement that read the file. */
  readonly from?: SourcePlace;
}

export const PLACE: z.ZodType<SourcePlace> = z.strictObject({
  file: z.string(),
  line: z.int(),
  from: maybe(z.lazy(() => PLACE)),
});

function describe(place: SourcePlace, text: string): string {
  let outermost = place;
  let depth = 0;
  for (; outermost.from; depth++) outermost = outermost.from;
  const said = depth === 0 ? text : `Error "${place.file}", Line ${place.line}, Include Depth ${depth}: ${text}`;
  return `on Line ${outermost.line} of ${outermost.file}: ${said}`;
}

/** The refusal of a submit description: one sentence with file and line, and the remedy. */
export function badInput(
  place: SourcePlace | undefined,
  text: string,
  suggestions: readonly string[] = [],
): GryphusError {
  return new GryphusError('bad-input', place ? describe(place, text) : text, { suggestions });
}

/** A message that does not stop the submit. */
export interface SubmitWarning {
  /** From 1; absent if no line is to blame. */
  readonly line?: number;
  readonly message: string;
}
