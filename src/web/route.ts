import * as z from 'zod';
import { GryphusError } from '../errors.ts';
import type { Web } from './web.ts';

/** One request, checked. */
export interface Call<Q, B> {
  readonly web: Web;
  /** The parts of the path that are named in it. */
  readonly at: Readonly<Record<string, string>>;
  readonly query: Q;
  readonly body: B;
}

interface Spec<Q, B, A> {
  readonly method: 'GET' | 'POST';
  /** Below /api/v1; `:name` is a part that varies. */
  readonly path: string;
  readonly summary: string;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  readonly answer: z.ZodType<A>;
  readonly run: (call: Call<Q, B>) => A | Promise<A>;
}

/** A request as it came. */
export interface RawCall {
  readonly web: Web;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly summary: string;
  readonly query: z.ZodType | undefined;
  readonly body: z.ZodType | undefined;
  readonly answer: z.ZodType;
  /** Rejects with 'bad-input' if the request does not have its shape. */
  readonly run: (raw: RawCall) => Promise<unknown>;
}

const PARAMS = z.record(z.string(), z.string());
const NONE = z.unknown();

export function route<Q, B, A>(spec: Spec<Q, B, A>): Route {
  const { method, path, summary, query, body, answer, run } = spec;
  return {
    method,
    path,
    summary,
    query,
    body,
    answer,
    run: async ({ web, params, query: asked, body: sent }) => {
      const at = checked(PARAMS, params, 'the path');
      const call = {
        web,
        at,
        query: checked(query ?? (NONE as z.ZodType<Q>), asked, 'the query'),
        body: checked(body ?? (NONE as z.ZodType<B>), sent, 'the body'),
      };
      return run(call);
    },
  };
}

/** What a schema reads of a request. Throws a GryphusError 'bad-input' that names `what`. */
export function checked<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  throw new GryphusError('bad-input', `${what}: ${z.prettifyError(found.error).replaceAll(/\s+/g, ' ')}`);
}
