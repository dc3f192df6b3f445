import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ERRORS, GryphusError } from '../errors.ts';
import { type Access, isOwnHost, isOwnOrigin, KEY_HEADER } from './access.ts';
import type { Assets } from './assets.ts';
import { METRICS_TYPE, metrics } from './metrics.ts';
import { openApi } from './openapi.ts';
import { ROUTES } from './routes.ts';
import { streamChanges } from './stream.ts';
import { followOutput, talkLogin } from './talk.ts';
import type { Web } from './web.ts';

/** Requests with longer bodies are refused; bytes. */
const LONGEST_BODY = 4 * 2 ** 20;

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
  readonly access: Access;
  readonly assets: Assets;
  /** Requests come through a socket that only the user can open: none needs to prove itself. */
  readonly trusted: boolean;
  /** At 127.0.0.1; `undefined`: it listens at its socket only. */
  readonly port: () => number | undefined;
  /** Ends the server. */
  readonly stop: () => void;
}

const STATUS: Readonly<Record<string, number>> = { 'not-found': 404, 'not-permitted': 403, conflict: 409 };

/** The page, its interface under /api/v1, and /metrics. */
export function makeApp({ web, access, assets, trusted, port, stop }: AppOptions): FastifyInstance {
  const app = Fastify({
    bodyLimit: LONGEST_BODY,
    forceCloseConnections: true,
    logger: false,
    exposeHeadRoutes: false,
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    if (!trusted && !isOwnHost(request.headers.host)) return refuse(reply, 'This name is not of this machine.');
  });
  const guard = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    reply.header('cache-control', 'no-store');
    if (trusted) return undefined;
    const { headers } = request;
    if (access.bears(headers.authorization)) return undefined;
    const key = headers[KEY_HEADER];
    const known = access.knows(headers.cookie, typeof key === 'string' ? key : undefined);
    if (known && isOwnOrigin(headers)) return undefined;
    return refuse(reply, 'This browser is not logged in, or another page has asked. Type: gryphus web');
  };
  app.setErrorHandler((error, _request, reply) => fail(reply, error));
  app.setNotFoundHandler((_request, reply) => fail(reply, new GryphusError('not-found', 'There is nothing here.')));

  for (const [path, asset] of assets.all)
    app.get(path, (request, reply) => {
      reply.header('cache-control', 'no-cache').header('etag', asset.etag).header('vary', 'accept-encoding');
      if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send();
      const zipped = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
      if (zipped) reply.header('content-encoding', 'gzip');
      return reply.type(asset.type).send(zipped ? asset.gzip : asset.plain);
    });
  app.get<{ Querystring: { ticket?: unknown } }>('/open', (request, reply) => {
    const { ticket } = request.query;
    const session = typeof ticket === 'string' ? access.redeem(ticket) : undefined;
    // A page that is open already knows a used address, too.
    if (!session) return reply.header('cache-control', 'no-store').redirect('/#/', 303);
    return reply
      .header('cache-control', 'no-store')
      .header(
        'set-cookie',
        `${access.cookieName}=${session.cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000`,
      )
      .redirect(`/#key=${session.key}`, 303);
  });
  app.get('/metrics', { onRequest: guard }, async (_request, reply) =>
    reply.type(METRICS_TYPE).send(await metrics(web)),
  );
  void app.register(
    (api, _options, done) => {
      api.addHook('onRequest', guard);
      for (const { method, path, run } of ROUTES)
        api.route({
          method,
          url: path,
          handler: async ({ params, query, body }) => run({ web, params, query, body: body ?? {} }),
        });
      api.get('/openapi.json', () => openApi(ROUTES, web.version));
      api.get('/stream', (request, reply) => {
        const last = request.headers['last-event-id'];
        begin(reply);
        streamChanges(reply.raw, web.hub, typeof last === 'string' ? last : undefined);
      });
      api.get<{ Params: { job: string } }>('/jobs/:job/output', (request, reply) => {
        begin(reply);
        return followOutput(reply.raw, web, request.params.job, request.query);
      });
      api.post<{ Params: { site: string } }>('/sites/:site/login', (request, reply) => {
        begin(reply);
        return talkLogin(reply.raw, web, request.params.site);
      });
      done();
    },
    { prefix: '/api/v1' },
  );
  if (trusted) {
    app.post('/control/ticket', () => ({ ticket: access.ticket(), port: port() }));
    app.post('/control/stop', () => {
      setImmediate(stop);
      return {};
    });
  }
  return app;
}

/** From here on the answer is written by hand; it keeps the headers. */
function begin(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders()))
    if (value !== undefined) reply.raw.setHeader(name, value);
  reply.hijack();
}

function refuse(reply: FastifyReply, message: string): FastifyReply {
  return reply.code(403).send({ code: 'not-permitted', message, suggestions: [] });
}

function fail(reply: FastifyReply, error: unknown): FastifyReply {
  if (error instanceof GryphusError) {
    const { code, message, suggestions } = error;
    const status = STATUS[code] ?? (ERRORS[code].retry === 'later' ? 503 : code === 'internal' ? 500 : 400);
    return reply.code(status).send({ code, message, suggestions });
  }
  const known = error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
  const message = error instanceof Error ? error.message : String(error);
  return reply
    .code(known ? Number(error.statusCode) : 500)
    .send({ code: known ? 'bad-input' : 'internal', message, suggestions: [] });
}
