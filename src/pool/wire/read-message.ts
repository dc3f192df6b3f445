import type * as z from 'zod';
import { GryphusError } from '../../errors.ts';
import type { Read } from '../../site/shapes.ts';

/** So many characters of what is wrong are said. */
const MOST = 120;

/** Reads what a connection brought; throws a GryphusError 'protocol-error' that says what is wrong at what is no message of ours. */
export function reader<S extends z.ZodType>(schema: S): (value: unknown) => Read<S> {
  return (value) => {
    const { data, error } = schema.safeParse(value);
    if (!error) return data as Read<S>;
    const message = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
    throw new GryphusError('protocol-error', `invalid message: ${message.slice(0, MOST)}`);
  };
}
