import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { appendFile, open, readFile, rename, rm, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { TLSSocket } from 'node:tls';
import { NO_RESUMPTION, tlsCredential } from '../credentials/gsi/connect.ts';
import { verifyPeer } from '../credentials/gsi/peer.ts';
import type { Credential } from '../credentials/x509/proxy-file.ts';
import type { Trust } from '../credentials/x509/trust.ts';
import { asError, GryphusError } from '../errors.ts';
import { namesFlushed } from '../util/names-flushed.ts';
import { type GramMessage, readFields } from './protocol.ts';

/** What can be read at a path: its length and its bytes. */
export interface Readable {
  readonly bytes: number;
  stream(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** Where data sent to a path goes: a whole file, or a piece of one at its offset. */
export interface Writable {
  readonly path: string;
  readonly offset?: number;
  /** Called once the data is in place. */
  readonly done: () => void;
}

/** What the server gives access to; `undefined`: the path does not allow this. */
export interface GassHandler {
  read(path: string): Promise<Readable | undefined>;
  write(path: string): Writable | undefined;
  /** Receives a job manager's callback about a job. */
  news(message: GramMessage): void;
}

export interface GassOptions {
  readonly gassHandler: GassHandler;
  readonly trust: () => Trust;
  /** The only subject admitted: the user's own. */
  readonly identity: string;
  readonly credential: Credential;
  readonly address: string;
  /** 0 means any free port. */
  readonly port: number;
}

/** Globus' clients append through a request to this program, followed by the file's path. */
const APPENDING = '/globus-bins/GASSappend?';
const LARGEST_MESSAGE = 64 * 1024;

/**
 * A GASS server: https with the user's proxy, open to that user only. Supports GET and PUT of whole files, pieces at an
 * offset, appending in the way of Globus' clients, and the callbacks of job managers.
 */
export class GassServer {
  readonly #server: Server;
  readonly #options: GassOptions;

  private constructor(options: GassOptions) {
    this.#options = options;
    const tls = tlsCredential(options.credential);
    this.#server = createServer(
      // Node cannot verify the grid's chains; `#admits` does so before anything is read or written.
      { ...tls.options, ...NO_RESUMPTION, requestCert: true, rejectUnauthorized: false },
      (request, response) => void this.#serve(request, response),
    );
    tls.done();
    // A peer that disconnects early or is rejected needs no handling here.
    this.#server.on('tlsClientError', () => undefined);
    this.#server.on('clientError', (_, socket) => socket.destroy());
  }

  /** Starts listening; throws 'conflict' if the port is in use. */
  static async listen(options: GassOptions): Promise<GassServer> {
    const gass = new GassServer(options);
    await new Promise<void>((resolve, reject) => {
      gass.#server.once('error', (error: NodeJS.ErrnoException) =>
        reject(
          new GryphusError('conflict', `Port ${options.port} of ${options.address} cannot be used (${error.code}).`),
        ),
      );
      gass.#server.listen(options.port, options.address, resolve);
    });
    gass.#server.on('error', () => undefined);
    return gass;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Applies from the next connection on. */
  use(credential: Credential): void {
    const tls = tlsCredential(credential);
    this.#server.setSecureContext({ ...tls.options, ...NO_RESUMPTION });
    tls.done();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    try {
      if (!this.#admits(request.socket as TLSSocket)) return answer(response, 400, 'Bad Request');
      await this.#answer(request, response);
    } catch (thrown) {
      const { code } = asError(thrown) as NodeJS.ErrnoException;
      if (!response.headersSent) answer(response, code === 'ENOSPC' || code === 'EDQUOT' ? 507 : 500, 'Failed');
      response.destroy();
    }
  }

  #admits(socket: TLSSocket): boolean {
    const verdict = verifyPeer(socket, this.#options.trust());
    return verdict?.ok === true && verdict.identity === this.#options.identity;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { gassHandler } = this.#options;
    const { path, appends } = placeOf(request.url ?? '/');
    if (request.method === 'GET') {
      const found = await gassHandler.read(path);
      if (found === undefined) return answer(response, 404, 'Not Found');
      response.writeHead(200, { 'content-length': found.bytes, connection: 'close' });
      await pipeline(found.stream(), response);
      return;
    }
    if (request.method === 'POST' && request.headers['content-type'] === 'application/x-globus-gram') {
      gassHandler.news({ http: 200, fields: readFields((await readAll(request)).toString('utf8')) });
      return answer(response, 200, 'OK');
    }
    if (request.method !== 'PUT' && request.method !== 'POST') return answer(response, 405, 'Method Not Allowed');
    const to = gassHandler.write(path);
    if (to === undefined) return answer(response, 403, 'Forbidden');
    await receive(request, to, appends || request.method === 'POST');
    return answer(response, 200, 'OK');
  }
}

function placeOf(url: string): { readonly path: string; readonly appends: boolean } {
  if (url.startsWith(APPENDING)) return { path: url.slice(APPENDING.length), appends: true };
  const [path = '/', query = ''] = url.split('?');
  return { path, appends: query === 'append=true' };
}

/** All or nothing: an interrupted transfer changes nothing. */
async function receive(request: IncomingMessage, to: Writable, appends: boolean): Promise<void> {
  const coming = `${to.path}.${randomBytes(4).toString('hex')}.part`;
  try {
    await pipeline(request, createWriteStream(coming, { mode: 0o600 }));
    if (!request.complete) throw new Error('the request was cut short');
    if (to.offset !== undefined) await putAt(coming, to.path, to.offset);
    else if (appends) await appendFile(to.path, await readFile(coming), { mode: 0o600 });
    else {
      const file = await open(coming, 'r');
      try {
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(coming, to.path);
      // The service deletes its own copy when this is acknowledged.
      await namesFlushed(dirname(to.path));
    }
    to.done();
  } finally {
    await rm(coming, { force: true });
  }
}

/** A piece that would leave a gap is refused; the sender then retries from where it was. */
async function putAt(from: string, path: string, offset: number): Promise<void> {
  const here = await stat(path).then(
    ({ size }) => size,
    () => 0,
  );
  if (offset > here) throw new Error('a gap');
  const file = await open(path, here === 0 ? 'w' : 'r+', 0o600);
  try {
    const bytes = await readFile(from);
    await file.write(bytes, 0, bytes.length, offset);
  } finally {
    await file.close();
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LARGEST_MESSAGE) throw new Error('too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Globus' clients close right after the answer or wait for us to close. */
function answer(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, message, { 'content-length': 0, connection: 'close' });
  response.end();
}
