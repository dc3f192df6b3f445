import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { ClientRequest, IncomingMessage } from 'node:http';
import * as http from 'node:http';
import * as https from 'node:https';
import { pipeline } from 'node:stream/promises';
import { rootCertificates } from 'node:tls';
import { GryphusError } from '../../errors.ts';
import { unplaceable } from '../place.ts';
import type { Fetched, UrlFetcher, UrlOptions } from './contract.ts';
import { type Digest, digestOf, sameDigest } from './digests.ts';
import { schemeOf } from './file-url.ts';
import { Part } from './part.ts';
import { type TransferDirection, needsLogin, ofConnection, refused, unreachable } from './trouble.ts';

/** After this many milliseconds without a byte, the server counts as gone. */
const IDLE_MS = 60_000;
const REDIRECTS = 5;
/** How long to wait for "100 Continue" before sending the body anyway, in milliseconds (RFC 9110, 10.1.1). */
const CONTINUE_MS = 1000;
/** How many times an interrupted transfer is resumed at once, as long as each try brings something. */
const CUTS = 20;

/** HTTP and HTTPS (RFC 9110): ranges with If-Range, entity tags, Repr-Digest and Content-MD5, PUT. */
export const httpFetcher: UrlFetcher = {
  schemes: ['http', 'https'],

  async fetch(url, to, options) {
    const part = new Part(to);
    for (let cut = 0, before = -1; ; cut++) {
      const fetched = await attempt(url, part, options);
      if (!(fetched instanceof GryphusError)) return fetched;
      const bytes = (await part.here())?.bytes ?? 0;
      if (bytes <= before || cut >= CUTS) throw fetched;
      before = bytes;
    }
  },

  async store(from, url, options) {
    const { size } = await stat(from).catch((thrown: unknown) => {
      throw unplaceable(from, thrown);
    });
    const put = () => ask(url, 'PUT', { 'content-length': String(size), expect: '100-continue' }, options, from);
    let answer = await put();
    answer.message.resume();
    // WebDAV makes no directories by itself (RFC 4918, 9.7.1).
    if ([404, 409].includes(answer.message.statusCode ?? 0)) {
      await makeCollections(url, options);
      answer = await put();
      answer.message.resume();
    }
    good(url, 'store', answer, options);
    const seen = await ask(url, 'HEAD', {}, options);
    seen.message.resume();
    const there = seen.message.headers['content-length'];
    // Some servers accept a file but do not show it again.
    if (seen.message.statusCode !== 200 || there === undefined || Number(there) === size) return;
    throw unreachable(url, `it has ${there} of the ${size} bytes that were sent`);
  },

  async remove(url, what, options) {
    const at = what === 'directory' ? new URL(`${url.href.replace(/\/+$/, '')}/`) : url;
    const answer = await ask(at, 'DELETE', {}, options);
    answer.message.resume();
    const status = answer.message.statusCode ?? 0;
    // A server without directories has none to remove.
    if (status === 404 || status === 410 || (what === 'directory' && [403, 405, 409].includes(status))) return;
    good(url, 'store', answer, options);
  },
};

async function makeCollections(url: URL, options: UrlOptions): Promise<void> {
  for (let cut = url.pathname.indexOf('/', 1); cut > 0; cut = url.pathname.indexOf('/', cut + 1)) {
    const above = new URL(url);
    above.pathname = url.pathname.slice(0, cut + 1);
    const answer = await ask(above, 'MKCOL', {}, options);
    answer.message.resume();
  }
}

/** One request; a returned error, unlike a thrown one, may be resumed from. */
async function attempt(url: URL, part: Part, options: UrlOptions): Promise<Fetched | GryphusError> {
  const begun = await part.here();
  const goesOn: Record<string, string> =
    begun && begun.bytes > 0 ? { range: `bytes=${begun.bytes}-`, 'if-range': begun.version } : {};
  const known: Record<string, string> = options.have === undefined ? {} : validator(options.have);
  const answer = await ask(url, 'GET', { 'accept-encoding': 'identity', ...known, ...goesOn }, options);
  const { message } = answer;
  if (message.statusCode === 304) {
    message.resume();
    return { version: options.have, same: true };
  }
  if (message.statusCode === 416) {
    message.resume();
    await part.drop();
    return unreachable(url, 'the content changed during the transfer');
  }
  good(url, 'fetch', answer, options);
  const version = versionOf(message);
  if (message.statusCode !== 206) await part.drop();
  const start = await part.begin(version);
  if (message.statusCode === 206 && firstByte(message) !== start) {
    message.destroy();
    await part.drop();
    return unreachable(url, 'it sent a different range than requested');
  }
  try {
    await part.write(start, (file) => pipeline(message, file));
  } catch (thrown) {
    const error = failureOf(part.path, thrown) ?? ofConnection(url, 'fetch', thrown);
    if (error.code !== 'url-unreachable') throw error;
    return error;
  }
  const problem = await verify(url, part, start, message);
  if (problem) return problem;
  await part.finish();
  return { version, same: false };
}

/** Errors of our own disk rather than the server. */
function failureOf(path: string, thrown: unknown): GryphusError | undefined {
  const code = thrown instanceof Error && 'syscall' in thrown && 'code' in thrown ? String(thrown.code) : '';
  return ['ENOSPC', 'EDQUOT', 'EFBIG', 'EACCES', 'EROFS', 'EIO'].includes(code) ? unplaceable(path, thrown) : undefined;
}

async function verify(
  url: URL,
  part: Part,
  start: number,
  message: IncomingMessage,
): Promise<GryphusError | undefined> {
  const length = message.headers['content-length'];
  const { size } = await stat(part.path);
  if (length !== undefined && size !== start + Number(length)) return unreachable(url, 'it was cut short');
  const total = /\/(\d+)$/.exec(message.headers['content-range'] ?? '')?.[1];
  if (total !== undefined && size !== Number(total)) return unreachable(url, 'it was cut short');
  const said: Digest | undefined = digestOf(message.headers, message.statusCode === 206);
  if (said === undefined || (await sameDigest(part.path, said))) return undefined;
  await part.drop();
  return unreachable(url, `what arrived does not have the ${said.name} that the server announced`);
}

/**
 * A strong entity tag, or a Last-Modified at least two seconds before Date (RFC 9110, 8.8): a range can rely on these.
 */
function versionOf({ headers }: IncomingMessage): string | undefined {
  const { etag, 'last-modified': modified, date } = headers;
  if (etag !== undefined && !etag.startsWith('W/')) return etag;
  if (modified === undefined) return undefined;
  return Date.parse(date ?? '') - Date.parse(modified) >= 2000 ? modified : undefined;
}

function validator(version: string): Record<string, string> {
  return version.startsWith('"') ? { 'if-none-match': version } : { 'if-modified-since': version };
}

function firstByte({ headers }: IncomingMessage): number {
  return Number(/^bytes (\d+)-/.exec(headers['content-range'] ?? '')?.[1] ?? Number.NaN);
}

interface Answer {
  readonly url: URL;
  readonly message: IncomingMessage;
}

/** The answer after at most five redirections. The log-in is sent only to the URL's own host. */
async function ask(
  url: URL,
  method: 'GET' | 'HEAD' | 'PUT' | 'DELETE' | 'MKCOL',
  headers: Record<string, string>,
  options: UrlOptions,
  body?: string,
): Promise<Answer> {
  const direction = method === 'GET' ? 'fetch' : 'store';
  let at = url;
  for (let count = 0; ; count++) {
    const message = await once(at, method, { ...headers, ...login(at, url, options) }, options, body).catch(
      (thrown: unknown) => {
        throw ofConnection(url, direction, thrown);
      },
    );
    const to = message.headers.location;
    if (![301, 302, 303, 307, 308].includes(message.statusCode ?? 0) || to === undefined) return { url: at, message };
    message.resume();
    at = new URL(to, at);
    const down = schemeOf(url) === 'https' && schemeOf(at) === 'http';
    if (!['http', 'https'].includes(schemeOf(at)) || down || count >= REDIRECTS) {
      throw refused(url, direction, count >= REDIRECTS ? 'it redirects in a circle' : `it redirects to ${at.origin}`);
    }
  }
}

function login(at: URL, first: URL, { login: given }: UrlOptions): Record<string, string> {
  if (given === undefined || at.host !== first.host || at.protocol !== first.protocol) return {};
  return { authorization: `Basic ${Buffer.from(`${given.user}:${given.password}`).toString('base64')}` };
}

function once(
  url: URL,
  method: string,
  headers: Record<string, string>,
  { ca, signal }: UrlOptions,
  body: string | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { method, headers: { 'user-agent': 'gryphus', ...headers }, ...(signal ? { signal } : {}) };
    const request =
      schemeOf(url) === 'https'
        ? https.request(url, {
            ...options,
            ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
            agent: false,
          })
        : http.request(url, { ...options, agent: false });
    request.setTimeout(IDLE_MS, () => request.destroy(new Error(`no answer for ${IDLE_MS / 1000} s`)));
    request.once('error', reject);
    request.once('response', resolve);
    if (body === undefined) request.end();
    else sendBody(request, body, reject);
  });
}

/** Sends the body once the server has asked for it. */
function sendBody(request: ClientRequest, path: string, reject: (thrown: unknown) => void): void {
  let sent = false;
  const send = () => {
    if (sent) return;
    sent = true;
    clearTimeout(timer);
    pipeline(createReadStream(path), request).catch(reject);
  };
  const timer = setTimeout(send, CONTINUE_MS);
  request.once('continue', send);
  request.once('response', () => {
    clearTimeout(timer);
    // If the request is refused early, the rest of the body is not sent.
    if (!sent) request.destroy();
    sent = true;
  });
  request.once('close', () => clearTimeout(timer));
  request.flushHeaders();
}

function good(url: URL, direction: TransferDirection, { message }: Answer, options: UrlOptions): void {
  const status = message.statusCode ?? 0;
  if (status >= 200 && status < 300) return;
  message.resume();
  const text = `HTTP ${status} ${message.statusMessage ?? ''}`.trim();
  if (status === 401 || status === 407) throw needsLogin(url, direction, options.login !== undefined, text);
  if (status >= 500 || [408, 409, 423, 425, 429].includes(status)) throw unreachable(url, text);
  throw refused(url, direction, text);
}
