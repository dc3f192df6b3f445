import type { FastifyInstance } from 'fastify';
import type { IncomingHttpHeaders } from 'node:http';
import { type Access, isOwnHost, isOwnOrigin, KEY_HEADER } from './access.ts';
import type { Assets } from './assets.ts';
import { makeApp, refuse } from './server.ts';
import type { Running } from './running.ts';
import type { Web } from './web.ts';

interface PageOptions {
  readonly web: Web;
  readonly running: Running;
  readonly access: Access;
  readonly assets: Assets;
}

interface Control {
  /** At 127.0.0.1; `undefined`: it listens at its socket only. */
  readonly port: () => number | undefined;
  /** Ends the server. */
  readonly stop: () => void;
}

/** The page and its interface, for a port of 127.0.0.1: every request has to prove itself. */
export function pageApp(options: PageOptions): FastifyInstance {
  const { web, running, access } = options;
  const app = makeApp({ web, running, guard: guardOf(access) });
  app.addHook('onRequest', async (request, reply) =>
    isOwnHost(request.headers.host) ? undefined : refuse(reply, 'This name is not of this machine.'),
  );
  addPage(app, options);
  return app;
}

/** The same at a socket that only the user can open, where the server is also told what to do. */
export function pageSocketApp(options: PageOptions, { port, stop }: Control): FastifyInstance {
  const { web, running, access } = options;
  const app = makeApp({ web, running });
  addPage(app, options);
  app.post('/control/ticket', () => ({ ticket: access.ticket(), port: port() }));
  app.post('/control/stop', () => {
    setImmediate(stop);
    return {};
  });
  return app;
}

function guardOf(access: Access): (headers: IncomingHttpHeaders) => string | undefined {
  return (headers) => {
    if (access.bears(headers.authorization)) return undefined;
    const key = headers[KEY_HEADER];
    const known = access.knows(headers.cookie, typeof key === 'string' ? key : undefined);
    if (known && isOwnOrigin(headers)) return undefined;
    return 'This browser is not logged in, or another page has asked. Type: gryphus web';
  };
}

function addPage(app: FastifyInstance, { access, assets }: PageOptions): void {
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
}
