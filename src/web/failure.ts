import * as z from 'zod';
import { asError, ERRORS, GryphusError } from '../errors.ts';
import type { ERROR } from './schemas.ts';

/** Where the routes are described. */
export const DESCRIPTION = '/api/v1/openapi.json';
export const SEE_DESCRIPTION = `What each route takes and answers is described in ${DESCRIPTION}.`;

export type Failure = z.infer<typeof ERROR>;

/** One thing that is wrong in a request. `field`: its place, such as `tasks[3].args`; '' is the whole. */
interface Fault {
  readonly field: string;
  readonly message: string;
}

/** A request that does not have the shape of its route. */
export class WrongRequest extends GryphusError {
  readonly faults: readonly Fault[];

  /** `what`: the part of the request. */
  constructor(what: string, { issues }: z.ZodError) {
    const faults = issues.flatMap(faultsOf);
    const all = faults.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`)).join('; ');
    super('bad-input', `In ${what}, ${all}.`, { suggestions: [SEE_DESCRIPTION] });
    this.faults = faults;
  }
}

function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  const place = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  const field = place.replace(/^\./, '');
  if (issue.code !== 'unrecognized_keys') return [{ field, message: issue.message }];
  return issue.keys.map((key) => ({
    field: field === '' ? key : `${field}.${key}`,
    message: 'there is no such field',
  }));
}

const STATUS: Readonly<Record<string, number>> = { 'not-found': 404, 'not-permitted': 403, conflict: 409 };

/** What the client is told of an error, and the HTTP status. */
export function failureOf(thrown: unknown): { readonly status: number; readonly body: Failure } {
  if (!(thrown instanceof GryphusError))
    return { status: 500, body: { code: 'internal', message: asError(thrown).message, suggestions: [] } };
  const { code, message, suggestions } = thrown;
  const status = STATUS[code] ?? (ERRORS[code].retry === 'later' ? 503 : code === 'internal' ? 500 : 400);
  const faults = thrown instanceof WrongRequest ? { faults: [...thrown.faults] } : {};
  return { status, body: { code, message, suggestions: [...suggestions], ...faults } };
}
