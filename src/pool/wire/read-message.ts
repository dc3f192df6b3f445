import type * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import type { Read } from '../../util/schema.ts';

/** The maximum length of an error message, in characters. */
const MOST = 120;

/**
 * Returns a parser for messages from a connection. It throws a GryphusError 'protocol-error' that says what is wrong
 * with an invalid message.
 */
export function reader<S extends z.ZodType>(schema: S): (value: unknown) => Read<S> {
  return (value) => {
    const { data, error } = schema.safeParse(value);
    if (!error) return data as Read<S>;
    const message = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
    throw new GryphusError('protocol-error', `invalid message: ${message.slice(0, MOST)}`);
  };
}
