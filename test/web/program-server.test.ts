import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GryphusError } from '../../src/errors.ts';
import type { Gryphus, MapRequest, MapTask } from '../../src/index.ts';
import { deferred } from '../../src/util/deferred.ts';
import { Access } from '../../src/web/access.ts';
import { pageApp } from '../../src/web/page-server.ts';
import { servePrograms } from '../../src/web/program-server.ts';
import { Running } from '../../src/web/running.ts';
import { Web } from '../../src/web/web.ts';

let dir: string;
let socket: string;
let web: Web;
let server: Awaited<ReturnType<typeof servePrograms>>;
/** What the agent does here; everything else is refused. */
let does: Partial<Record<keyof Gryphus, unknown>>;
const agent = new Proxy({} as Gryphus, {
  get: (_, name: keyof Gryphus) =>
    does[name] ??
    (() => {
      throw new GryphusError('queue-unavailable', `There is no ${name}.`);
    }),
});
const forever = { idleMs: 3600_000, lookMs: 5 };

beforeEach(async () => {
  does = { paths: { stateDir: '/nowhere' } };
  dir = mkdtempSync(join(tmpdir(), 'gry-'));
  socket = join(dir, 'api');
  web = new Web(agent, '9');
  server = await servePrograms(web, socket, forever);
});
afterEach(async () => {
  server.end();
  await server.ended;
  web.hub.close();
  web.samples.close();
  web.table.close();
  rmSync(dir, { recursive: true, force: true });
});

interface Answer {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly text: string;
}

/** Sends a request; `begun`: with the beginning of its answer. */
function send(method: string, path: string, body?: unknown) {
  const begun = deferred<IncomingMessage>();
  const sent: ClientRequest = request({ socketPath: socket, method, path, agent: false }, begun.resolve);
  sent.once('error', begun.reject);
  begun.promise.catch(() => undefined);
  if (body === undefined) sent.end();
  else sent.setHeader('content-type', 'application/json').end(typeof body === 'string' ? body : JSON.stringify(body));
  return { sent, begun: begun.promise };
}

async function ask(method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await send(method, path, body).begun;
  let text = '';
  for await (const some of response.setEncoding('utf8')) text += String(some);
  return { status: response.statusCode, type: response.headers['content-type'], text };
}

async function json(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const { status, text } = await ask(method, `/api/v1${path}`, body);
  return { status, ...(JSON.parse(text) as object) };
}

/** The lines of a stream, one by one. */
async function* lines(response: IncomingMessage): AsyncGenerator<unknown> {
  let held = '';
  for await (const some of response.setEncoding('utf8')) {
    const all = (held + String(some)).split('\n');
    held = all.pop() ?? '';
    for (const line of all) yield JSON.parse(line);
  }
}

describe('the socket for programs', () => {
  it('is its owner’s, and served by one server', async () => {
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    const other = await servePrograms(web, socket, forever);
    expect([other.serves, server.serves]).toEqual([false, true]);
    await other.ended;
    expect((await ask('GET', '/api/v1/openapi.json')).status).toBe(200);
  });

  it('takes the place of a dead one’s', async () => {
    server.end();
    await server.ended;
    expect(existsSync(socket)).toBe(false);
    server = await servePrograms(web, socket, forever);
    expect((await ask('GET', '/api/v1/openapi.json')).status).toBe(200);
  });

  it('ends when nobody uses it, or when its name is no longer its own', async () => {
    rmSync(socket);
    await server.ended;
    server = await servePrograms(web, socket, { idleMs: 30, lookMs: 5 });
    await server.ended;
    expect(existsSync(socket)).toBe(false);
  });

  it('is kept by a client that is connected', async () => {
    server.end();
    await server.ended;
    const how = { ...forever };
    server = await servePrograms(web, socket, how);
    const keeps = new Agent({ keepAlive: true });
    const sent = request({ socketPath: socket, path: '/api/v1/openapi.json', agent: keeps }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    await once(answer.resume(), 'end');
    how.idleMs = 20;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(existsSync(socket)).toBe(true);
    keeps.destroy();
    await server.ended;
  });

  it('is kept by a submit whose client has left', async () => {
    server.end();
    await server.ended;
    const how = { ...forever };
    server = await servePrograms(web, socket, how);
    let over = false;
    void server.ended.then(() => (over = true));
    const [asked, done] = [deferred<void>(), deferred<void>()];
    does.submit = async () => {
      asked.resolve();
      await done.promise;
      expect(over).toBe(false);
      return { cluster: 1, queued: 1, total: 1, warnings: [] };
    };
    const { sent } = send('POST', '/api/v1/submit', { description: '', cwd: '/' });
    await asked.promise;
    how.idleMs = 20;
    sent.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(existsSync(socket)).toBe(true);
    done.resolve();
    await server.ended;
  });
});

describe('the interface', () => {
  it('answers every route that it describes, and no stranger’s at the page’s port', async () => {
    const { paths } = JSON.parse((await ask('GET', '/api/v1/openapi.json')).text) as {
      paths: Record<string, Record<string, { responses: { 200: { content: object } } }>>;
    };
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => ({
        method: method.toUpperCase() as 'GET' | 'POST',
        url: path.replaceAll(/\{\w+\}/g, '1.0'),
        type: Object.keys(responses[200].content)[0],
      })),
    );
    expect(routes.length).toBeGreaterThanOrEqual(40);
    does.events = async function* () {};
    does.map = async function* () {};
    const port = pageApp({
      web,
      running: new Running(),
      access: new Access(dir),
      assets: { all: [] } as never,
    });
    for (const { method, url, type } of routes) {
      const { begun, sent } = send(method, url, method === 'POST' ? {} : undefined);
      const response = await begun;
      if (response.statusCode === 200) expect(response.headers['content-type']).toContain(type);
      else {
        const [said = ''] = (await response.setEncoding('utf8').toArray()) as string[];
        expect(said).toContain('"code"');
        expect(said).not.toContain(`There is no ${method} `);
      }
      // Some streams never end.
      sent.destroy();
      for (const headers of [{}, { authorization: 'Bearer 0' }]) {
        const refused = await port.inject({ method, url, headers: { host: '127.0.0.1', ...headers } });
        expect(refused.statusCode, `${method} ${url}`).toBe(403);
      }
    }
    await port.close();
  });

  it('names each fault, and where the routes are described', async () => {
    const suggestions = ['What each route takes and answers is described in /api/v1/openapi.json.'];
    expect(await json('POST', '/run', { command: ['a', 1], cpus: 'four', colour: 'red', memory: 'lots' })).toEqual({
      status: 400,
      code: 'bad-input',
      message: expect.stringMatching(/^In the body, command\[1\]: .*; cpus: .*; memory: .*; colour: .*\.$/) as unknown,
      suggestions,
      faults: [
        { field: 'command[1]', message: 'Invalid input: expected string, received number' },
        { field: 'cpus', message: 'Invalid input: expected number, received string' },
        { field: 'memory', message: 'a number of MB, or a text such as "4G"' },
        { field: 'colour', message: 'there is no such field' },
      ],
    });
    const refused = (message: unknown, status: number, code = 'bad-input') =>
      expect.objectContaining({ status, code, message, suggestions }) as unknown;
    expect(await json('GET', '/fly?a=b')).toEqual(refused('There is no GET /api/v1/fly.', 404, 'not-found'));
    expect(await json('GET', '/run')).toEqual(refused('There is no GET /api/v1/run.', 404, 'not-found'));
    expect(await json('POST', '/run', '{')).toEqual(refused(expect.any(String), 400));
    expect(await json('POST', '/jobs/query', { jobs: ['12'] })).toEqual(
      refused('In the body, jobs[0]: a job is written as 12.3.', 400),
    );
    expect(await json('POST', '/submit', { cwd: 'here', description: 'queue' })).toEqual(
      refused('In the body, cwd: an absolute path.', 400),
    );
    for (const [path, asked] of [
      ['/run', { command: ['true'] }],
      ['/submit', { description: 'queue' }],
    ] as const)
      expect(await json('POST', path, { ...asked, cwd: '/no/such' })).toMatchObject({
        status: 400,
        message: 'cwd: there is no directory /no/such.',
      });
    expect(await json('POST', '/submit', { cwd: '/', description: 'x'.repeat(64 * 2 ** 20) })).toEqual(
      refused('The body is longer than 64 MiB.', 413),
    );
  });

  it('keeps the codes of errors, also of a stream before its first item', async () => {
    const refuse = () => {
      throw new GryphusError('site-unknown', 'No.', { suggestions: ['Type: gryphus site list'] });
    };
    does.submit = does.query = refuse;
    const error = { code: 'site-unknown', message: 'No.', suggestions: ['Type: gryphus site list'] };
    expect(await json('POST', '/submit', { description: '', cwd: '/' })).toEqual({ status: 400, ...error });
    expect(await json('POST', '/jobs/query', {})).toEqual({ status: 400, ...error });
    expect(await json('GET', '/status')).toMatchObject({ status: 503, code: 'queue-unavailable' });
  });
});

describe('a map', () => {
  const ended = (of: unknown) => ({
    of,
    ending: { how: { kind: 'exited', code: 0 } },
    stdout: Buffer.from(String(of)),
    stderr: Buffer.alloc(0),
    tries: 1,
  });

  it('takes more tasks while it tells their ends', async () => {
    does.map = async function* (tasks: AsyncIterable<MapTask<number>>) {
      for await (const { of } of tasks) yield ended(of);
    };
    const asked = { executable: 'x', cwd: '/', tasks: [{ of: 1, args: [] }] };
    const answer = lines(await send('POST', '/api/v1/maps', asked).begun);
    const first = (await answer.next()).value as { item: { map: string } };
    const end = (of: number, stdout: string) => ({
      value: { item: { of, how: { kind: 'exited', code: 0 }, stdout, stderr: '', tries: 1 } },
      done: false,
    });
    expect(await answer.next()).toEqual(end(1, 'MQ=='));
    const path = `/maps/${first.item.map}/tasks`;
    expect(await json('POST', path, { tasks: [{ of: 2, args: [] }] })).toEqual({
      status: 200,
      waiting: expect.any(Number) as unknown,
    });
    expect(await answer.next()).toEqual(end(2, 'Mg=='));
    expect(await json('POST', path, { last: true })).toEqual({ status: 200, waiting: expect.any(Number) as unknown });
    expect(await answer.next()).toEqual({ value: { end: true }, done: false });
    expect(await answer.next()).toEqual({ value: undefined, done: true });
    expect(await json('POST', path, {})).toMatchObject({ status: 404, message: 'This map has ended.' });
  });

  it('gives the pool no more tasks than the client reads ends of', async () => {
    const [full, ended] = [deferred<void>(), deferred<void>()];
    let taken = 0;
    does.map = async function* (tasks: AsyncIterable<MapTask<number>>) {
      yield* [];
      for await (const _ of tasks) if (++taken === 1000) full.resolve();
      ended.resolve();
    };
    const tasks = Array.from({ length: 3000 }, (_, of) => ({ of, args: [] }));
    const { sent, begun } = send('POST', '/api/v1/maps', { executable: 'x', cwd: '/', tasks });
    await begun;
    await full.promise;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(taken).toBe(1000);
    sent.destroy();
    await ended.promise;
  });

  it('is withdrawn when the connection of its answer ends', async () => {
    const withdrawn = deferred<void>();
    does.map = async function* (_: unknown, { signal }: MapRequest) {
      yield ended(1);
      await new Promise((resolve) => signal?.addEventListener('abort', resolve));
      withdrawn.resolve();
    };
    const { sent, begun } = send('POST', '/api/v1/maps', { executable: 'x', cwd: '/' });
    const answer = lines(await begun);
    await answer.next();
    await answer.next();
    sent.destroy();
    await withdrawn.promise;
  });
});
