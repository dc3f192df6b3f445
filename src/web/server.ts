import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { GryphusError } from '../errors.ts';
import { DESCRIPTION, failureOf, SEE_DESCRIPTION } from './failure.ts';
import { METRICS_TYPE, metrics } from './metrics.ts';
import { openApi } from './openapi.ts';
import { ROUTES } from './routes.ts';
import type { Running } from './running.ts';
import type { Web } from './web.ts';

/** Requests with longer bodies are refused; MiB. */
const LONGEST_BODY = 64;

/** No inline script or style, nothing from elsewhere, and no text becomes markup. */
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': CSP,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
} as const;

interface AppOptions {
  readonly web: Web;
  readonly running: Running;
  /** Why this request is refused; `undefined`: it may pass. Left out for a socket that only the user can open. */
  readonly guard?: (headers: IncomingHttpHeaders) => string | undefined;
}

/** The interface under /api/v1, and /metrics. */
export function makeApp({ web, running, guard }: AppOptions): FastifyInstance {
  const app = Fastify({
    bodyLimit: LONGEST_BODY * 2 ** 20,
    forceCloseConnections: true,
    logger: false,
    exposeHeadRoutes: false,
    // A client of the user keeps its connection until it ends: one that is closed as a request comes would lose it.
    ...(guard ? {} : { keepAliveTimeout: 0 }),
  });
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(HEADERS);
    done();
  });
  const onRequest = async ({ headers }: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    reply.header('cache-control', 'no-store');
    const why = guard?.(headers);
    return why === undefined ? undefined : refuse(reply, why);
  };
  app.setErrorHandler((error, _request, reply) => fail(reply, error));
  app.setNotFoundHandler(({ method, url }, reply) => {
    const path = url.replace(/\?.*/s, '');
    return fail(
      reply,
      new GryphusError('not-found', `There is no ${method} ${path}.`, { suggestions: [SEE_DESCRIPTION] }),
    );
  });
  app.get('/metrics', { onRequest }, async (_request, reply) => reply.type(METRICS_TYPE).send(await metrics(web)));
  app.get(DESCRIPTION, { onRequest }, () => openApi(ROUTES, web.version));
  for (const { method, path, handle } of ROUTES)
    app.route({
      method,
      url: `/api/v1${path}`,
      onRequest,
      handler: ({ params, query, body, headers }, reply) => {
        const left = new AbortController();
        reply.raw.once('close', () => left.abort());
        const take = () => begin(reply);
        return running.track(handle({ web, params, query, body: body ?? {}, headers, signal: left.signal, take }));
      },
    });
  return app;
}

/** From here on the answer is written by hand; it keeps the headers. */
function begin(reply: FastifyReply): ServerResponse {
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value);
  reply.hijack();
  return reply.raw;
}

export function refuse(reply: FastifyReply, message: string): FastifyReply {
  return reply.code(403).send({ code: 'not-permitted', message, suggestions: [] });
}

function fail(reply: FastifyReply, error: unknown): FastifyReply {
  const { status, body } = failureOf(error);
  const own = statusOf(error);
  if (own === undefined) return reply.code(status).send(body);
  // Fastify's own: a body that is no JSON, or too long.
  const message = own === 413 ? `The body is longer than ${LONGEST_BODY} MiB.` : body.message;
  return reply.code(own).send({ code: own < 500 ? 'bad-input' : 'internal', message, suggestions: [SEE_DESCRIPTION] });
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
    ? error.statusCode
    : undefined;
}
