import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A small WebDAV server: PUT wants its collection, which MKCOL makes; DELETE takes a collection with all in it. */
export class WebDav {
  readonly files = mkdtempSync(join(tmpdir(), 'gdav-'));
  readonly asked: string[] = [];
  /** Answers to give instead of the next ones. */
  readonly refusals: number[] = [];
  /** What happens to a file that was stored, before anybody can ask for it. */
  spoil: (path: string) => void = () => undefined;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      const path = join(this.files, decodeURIComponent(request.url ?? '/'));
      const { method = '' } = request;
      this.asked.push(`${method} ${request.url}`);
      const refusal = this.refusals.shift();
      const answer = (status: number, body?: Buffer) =>
        response.writeHead(status, body ? { 'content-length': body.length } : {}).end(method === 'HEAD' ? '' : body);
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (refusal !== undefined) return answer(refusal);
        if (method === 'MKCOL') {
          if (existsSync(path)) return answer(405);
          mkdirSync(path);
          return answer(201);
        }
        if (method === 'DELETE') {
          if (!existsSync(path)) return answer(404);
          rmSync(path, { recursive: true });
          return answer(204);
        }
        if (method === 'PUT') {
          if (!existsSync(dirname(path))) return answer(409);
          writeFileSync(path, Buffer.concat(chunks));
          this.spoil(path);
          return answer(201);
        }
        return existsSync(path) ? answer(200, readFileSync(path)) : answer(404);
      });
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
    rmSync(this.files, { recursive: true, force: true });
  }
}
