import * as z from 'zod';

/** What Lua and Redis return as text; a script may also return a whole number. */
const WORD = z.union([z.string(), z.number()]);
const WORDS = z.array(WORD);
const ROWS = z.array(WORDS);

/** The forms of answers to commands in a pipeline. */
export const TEXT_OR_NONE = z.string().nullable();
// Of long lists: checked by hand, which takes a tenth of the time.
export const TEXTS_OR_NONE = z.custom<(string | null)[]>(
  (answer) => Array.isArray(answer) && answer.every((one) => typeof one === 'string' || one === null),
  'not a list of texts',
);
export const TEXTS = z.custom<string[]>(
  (answer) => Array.isArray(answer) && answer.every((one) => typeof one === 'string'),
  'not a list of texts',
);
export const FIELDS = z.record(z.string(), z.string());

/** XREAD's: for each stream its key and entries; nothing if there are none. */
export const STREAMS = z.array(z.tuple([z.string(), z.array(z.tuple([z.string(), TEXTS]))])).nullable();

/** The answer of a script that returns a list. */
export function textsOf(answer: unknown): string[] {
  return WORDS.parse(answer).map(String);
}

/** The answer of a script that returns a list of lists. */
export function rowsOf(answer: unknown): string[][] {
  return ROWS.parse(answer).map((row) => row.map(String));
}

/** The results of a pipeline, each of this form; throws the first error. */
export function answersOf<S extends z.ZodType>(
  form: S,
  results: readonly (readonly [error: Error | null, result: unknown])[] | null,
): z.infer<S>[] {
  return (results ?? []).map(([error, result]) => {
    if (error) throw error;
    return form.parse(result);
  });
}
