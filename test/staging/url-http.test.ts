import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { httpFetcher } from '../../src/staging/url/http.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

describe('files by http', () => {
  let dir: string;
  let server: Server;
  let handler: Handler;
  const asked: string[] = [];
  const content = randomBytes(300_000);
  const etag = '"one"';

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gurl-'));
    asked.length = 0;
    handler = (request, response) => serve(request, response, content, etag);
    server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.range ?? ''}`.trim());
      handler(request, response);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    rmSync(dir, { recursive: true, force: true });
  });

  const url = (path = '/data') => new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
  const to = () => join(dir, 'file');

  function serve(request: IncomingMessage, response: ServerResponse, body: Buffer, tag: string, cutAt?: number): void {
    const start =
      request.headers['if-range'] === tag ? Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0) : 0;
    if (request.headers['if-none-match'] === tag) {
      response.writeHead(304).end();
      return;
    }
    const part = body.subarray(start);
    response.writeHead(start > 0 ? 206 : 200, {
      etag: tag,
      'content-length': part.length,
      'repr-digest': `sha-256=:${createHash('sha256').update(body).digest('base64')}:`,
      ...(start > 0 ? { 'content-range': `bytes ${start}-${body.length - 1}/${body.length}` } : {}),
    });
    if (cutAt === undefined || cutAt <= start) response.end(part);
    else {
      const sent = part.subarray(0, cutAt - start);
      response.write(sent);
      void arrived(start).then(() => response.socket?.destroy());
    }
  }

  /** Something after the first `bytes` is on disk. */
  async function arrived(bytes: number): Promise<void> {
    while ((statSync(`${to()}.part`, { throwIfNoEntry: false })?.size ?? 0) <= bytes) await new Promise(setImmediate);
  }

  it('come whole, and are not sent again while they are the same', async () => {
    expect(await httpFetcher.fetch(url(), to(), {})).toEqual({ version: etag, same: false });
    expect(readFileSync(to()).equals(content)).toBe(true);
    expect(await httpFetcher.fetch(url(), to(), { have: etag })).toEqual({ version: etag, same: true });
  });

  it('continue where they were cut', async () => {
    let cuts = 0;
    handler = (request, response) => serve(request, response, content, etag, [100_000, 200_000][cuts++]);
    await httpFetcher.fetch(url(), to(), {});
    expect(readFileSync(to()).equals(content)).toBe(true);
    expect(asked).toHaveLength(3);
    expect(asked.slice(1).every((line) => /bytes=[1-9]\d*-/.test(line))).toBe(true);
  });

  it('continue after a crash of the agent, unless the content has changed', async () => {
    handler = (request, response) => {
      if (asked.length === 1) serve(request, response, content, etag, 100_000);
      else response.destroy();
    };
    await expect(httpFetcher.fetch(url(), to(), {})).rejects.toMatchObject({ code: 'url-unreachable' });
    const other = randomBytes(200_000);
    handler = (request, response) => serve(request, response, other, '"two"');
    await httpFetcher.fetch(url(), to(), {});
    expect(readFileSync(to()).equals(other)).toBe(true);
    expect(asked.at(-1)).toMatch(/bytes=\d+-/);
  });

  it('are refused when their digest is another', async () => {
    handler = (_, response) =>
      response.writeHead(200, { 'repr-digest': 'sha-256=:AAAA:', 'content-length': 3 }).end('abc');
    await expect(httpFetcher.fetch(url(), to(), {})).rejects.toThrow(/sha256 that the server announced/);
    expect(existsSync(to())).toBe(false);
  });

  it.each([
    [404, 'input-missing', /HTTP 404 Not Found/],
    [401, 'input-missing', /requires a log-in/],
    [503, 'url-unreachable', /HTTP 503/],
  ])('an answer of %i is %s', async (status, code, words) => {
    handler = (_, response) => response.writeHead(status).end('nothing of interest');
    const failure = httpFetcher.fetch(url(), to(), {});
    await expect(failure).rejects.toMatchObject({ code });
    await expect(failure).rejects.toThrow(words);
  });

  it('a server that is not there is one that may come back', async () => {
    const gone = url();
    await new Promise((done) => server.close(done));
    await expect(httpFetcher.fetch(gone, to(), {})).rejects.toMatchObject({ code: 'url-unreachable' });
  });

  it('tell the log-in to their own host alone', async () => {
    const seen: (string | undefined)[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end('there');
    });
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    const there = `http://127.0.0.1:${(other.address() as AddressInfo).port}/x`;
    handler = (request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(302, { location: there }).end();
    };
    try {
      await httpFetcher.fetch(url(), to(), { login: { user: 'u', password: 'planted secret' } });
    } finally {
      await new Promise((done) => other.close(done));
    }
    expect(readFileSync(to(), 'utf8')).toBe('there');
    expect(seen).toEqual([`Basic ${Buffer.from('u:planted secret').toString('base64')}`, undefined]);
  });

  it('are put, and looked at afterwards', async () => {
    const from = join(dir, 'out');
    writeFileSync(from, content);
    let stored = Buffer.alloc(0);
    handler = (request, response) => {
      if (request.method === 'HEAD') {
        response.writeHead(200, { 'content-length': stored.length }).end();
        return;
      }
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        stored = Buffer.concat(parts);
        response.writeHead(201).end();
      });
    };
    await httpFetcher.store?.(from, url('/o%20p'), {});
    expect(stored.equals(content)).toBe(true);
    expect(asked).toEqual(['PUT /o%20p', 'HEAD /o%20p']);
    handler = (request, response) => {
      request.resume();
      if (request.method === 'HEAD') response.writeHead(200, { 'content-length': 5 }).end();
      else request.on('end', () => response.writeHead(201).end());
    };
    await expect(httpFetcher.store?.(from, url(), {})).rejects.toThrow('it has 5 of the 300000 bytes');
    handler = (_, response) => response.writeHead(403).end();
    await expect(httpFetcher.store?.(from, url(), {})).rejects.toMatchObject({ code: 'output-unwritable' });
  });

  it('that are cut while they are put may be put again, whole', async () => {
    const from = join(dir, 'out');
    writeFileSync(from, content);
    handler = (request) => void request.once('data', () => request.socket.destroy());
    await expect(httpFetcher.store?.(from, url(), {})).rejects.toMatchObject({ code: 'url-unreachable' });
    let taken = 0;
    let range: string | undefined;
    handler = (request, response) => {
      range ??= request.headers['content-range'];
      request.on('data', (part: Buffer) => (taken += part.length));
      request.on('end', () =>
        response.writeHead(request.method === 'PUT' ? 201 : 200, { 'content-length': taken }).end(),
      );
    };
    await httpFetcher.store?.(from, url(), {});
    expect({ taken, range }).toEqual({ taken: content.length, range: undefined });
  });
});
