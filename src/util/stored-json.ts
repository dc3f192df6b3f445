import type * as z from 'zod';
import { GryphusError } from '../errors.ts';

/** What the text is, such as "The journal /x/y", and how to go on without it, in one sentence. */
export interface StoredPlace {
  readonly what: string;
  readonly remedy: string;
}

/** The JSON that this or another process stored. Throws a GryphusError 'state-version' that names the place. */
export function parseStored<S extends z.ZodType>(schema: S, text: string, place: StoredPlace): z.infer<S> {
  const { data, error } = schema.safeParse(jsonOf(text, place));
  if (!error) return data;
  const [issue] = error.issues;
  throw damaged(place, issue === undefined ? 'its form is unknown' : `${issue.path.join('.')}: ${issue.message}`);
}

/** The same where a schema would cost too much, with a check by hand. */
export function checkStored<T>(is: (value: unknown) => value is T, text: string, place: StoredPlace): T {
  const value = jsonOf(text, place);
  if (is(value)) return value;
  throw damaged(place, 'its form is unknown');
}

/** The JSON, or `undefined` if the text is none or not what the schema says: for what can be done without. */
export function storedOr<S extends z.ZodType>(schema: S, text: string): z.infer<S> | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function jsonOf(text: string, place: StoredPlace): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(place, 'it is not JSON', cause);
  }
}

function damaged({ what, remedy }: StoredPlace, why: string, cause?: unknown): GryphusError {
  return new GryphusError('state-version', `${what} is damaged, or of another version of gryphus: ${why}.`, {
    suggestions: [remedy],
    cause,
  });
}
