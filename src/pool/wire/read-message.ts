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
    throw new GryphusError('protocol-error', `invalid message: ${faultsOf(error)}`);
  };
}

/** What a schema rejects in a value, and where, in at most 120 characters. */
export function faultsOf(error: z.ZodError): string {
  const message = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
  return message.slice(0, MOST);
}
