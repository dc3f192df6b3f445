import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import * as z from 'zod';
import { WrongRequest } from './failure.ts';
import { sendItems } from './items.ts';
import { ERROR } from './schemas.ts';
import type { Web } from './web.ts';

/** One request, checked. */
export interface Call<Q, B> {
  readonly web: Web;
  /** The parts of the path that are named in it. */
  readonly at: Readonly<Record<string, string>>;
  readonly query: Q;
  readonly body: B;
  /** Aborted when the connection of the request has ended. */
  readonly signal: AbortSignal;
}

interface Asked<Q, B> {
  readonly method: 'GET' | 'POST';
  /** Below /api/v1; `:name` is a part that varies. */
  readonly path: string;
  readonly summary: string;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
}

interface Spec<Q, B, A> extends Asked<Q, B> {
  readonly answer: z.ZodType<A>;
  readonly run: (call: Call<Q, B>) => A | Promise<A>;
}

interface ItemsSpec<Q, B> extends Asked<Q, B> {
  readonly item: z.ZodType;
  /** The answer begins before its first item, which may be long in coming. */
  readonly quiet?: boolean;
  /** Each item as JSON. */
  readonly run: (call: Call<Q, B>) => AsyncIterable<string>;
}

interface WrittenSpec<Q, B> extends Asked<Q, B> {
  /** The media type of the answer. */
  readonly type: string;
  readonly write: (call: Call<Q, B>, take: RawCall['take'], headers: IncomingHttpHeaders) => void | Promise<void>;
}

/** A request as it came. */
export interface RawCall {
  readonly web: Web;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly headers: IncomingHttpHeaders;
  readonly signal: AbortSignal;
  /** From then on the answer is written by hand. */
  readonly take: () => ServerResponse;
}

export interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly summary: string;
  readonly query: z.ZodType | undefined;
  readonly body: z.ZodType | undefined;
  /** The media type of the answer, and its shape or, of a stream of items, that of each line. */
  readonly type: string;
  readonly answer: z.ZodType | undefined;
  /** Resolves with the answer, unless it was written. Rejects with 'bad-input' if the request does not have its shape. */
  readonly handle: (raw: RawCall) => Promise<unknown>;
}

const PARAMS = z.record(z.string(), z.string());
const NONE = z.unknown();

/** A route with one answer in JSON. */
export function route<Q, B, A>(spec: Spec<Q, B, A>): Route {
  return made(spec, 'application/json', spec.answer, async (raw) => spec.run(calledBy(spec, raw)));
}

/** A route whose answer is a stream of items, a line each: see items.ts. */
export function itemsRoute<Q, B>(spec: ItemsSpec<Q, B>): Route {
  const line = z.union([
    z.object({ item: spec.item }),
    z.object({ error: ERROR }).meta({ description: 'The last line, if it failed on the way.' }),
    z.object({ end: z.literal(true) }).meta({ description: 'The last line; without one, the answer was cut off.' }),
  ]);
  return made(spec, 'application/x-ndjson', line, (raw) =>
    sendItems(spec.run(calledBy(spec, raw)), raw.take, spec.quiet ?? false),
  );
}

/** A route whose answer has a form of its own. */
export function writtenRoute<Q, B>(spec: WrittenSpec<Q, B>): Route {
  return made(spec, spec.type, undefined, async (raw) => {
    await spec.write(calledBy(spec, raw), raw.take, raw.headers);
  });
}

function made<Q, B>(
  { method, path, summary, query, body }: Asked<Q, B>,
  type: string,
  answer: z.ZodType | undefined,
  handle: Route['handle'],
): Route {
  return { method, path, summary, query, body, type, answer, handle };
}

function calledBy<Q, B>({ query, body }: Asked<Q, B>, raw: RawCall): Call<Q, B> {
  return {
    web: raw.web,
    at: checked(PARAMS, raw.params, 'the path'),
    query: checked(query ?? (NONE as z.ZodType<Q>), raw.query, 'the query'),
    body: checked(body ?? (NONE as z.ZodType<B>), raw.body, 'the body'),
    signal: raw.signal,
  };
}

function checked<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const found = schema.safeParse(value);
  if (found.success) return found.data;
  throw new WrongRequest(what, found.error);
}
