import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { rootCertificates } from 'node:tls';
import { Client, FTPError } from 'basic-ftp';
import { asError, GryphusError } from '../../errors.ts';
import { unplaceable } from '../place.ts';
import type { UrlFetcher, UrlOptions } from './contract.ts';
import { pathOf, schemeOf } from './file-url.ts';
import { Part } from './part.ts';
import { type Direction, needsLogin, ofConnection, refused, unreachable } from './trouble.ts';

/** After this many milliseconds without a byte, the server counts as gone. */
const IDLE_MS = 60_000;
const IMPLICIT_PORT = 990;

/**
 * FTP (RFC 959; REST, SIZE and MDTM of RFC 3659), and FTPS: TLS by AUTH TLS before the log-in (RFC 4217), or on port
 * 990 from the first byte; never a fallback to plain FTP. A path is relative to the log-in's directory; with two
 * slashes it starts at the root.
 */
export const ftpFetcher: UrlFetcher = {
  schemes: ['ftp', 'ftps'],

  fetch(url, to, options) {
    return session(url, 'fetch', options, async (client) => {
      const path = remotePath(url);
      const before = await lookOf(client, path);
      if (before.version !== undefined && before.version === options.have)
        return { version: before.version, same: true };
      const part = new Part(to);
      const start = await part.begin(before.version);
      if (start < before.bytes || before.bytes === 0) {
        await part.write(start, (file) => client.downloadTo(file, path, start), before.bytes);
      }
      const { size } = await stat(part.path);
      const after = await lookOf(client, path);
      if (after.bytes !== before.bytes || after.version !== before.version || size !== after.bytes) {
        await part.drop();
        throw unreachable(url, `${size} bytes arrived of ${after.bytes}, or it changed during the transfer`);
      }
      await part.finish();
      return { version: before.version, same: false };
    });
  },

  store(from, url, options) {
    return session(url, 'store', options, async (client) => {
      const path = remotePath(url);
      const { size } = await stat(from).catch((thrown: unknown) => {
        throw unplaceable(from, thrown);
      });
      // The name depends on the content, so that a part of another file is never continued.
      const waiting = posix.join(posix.dirname(path), `.gryphus-${(await contentOf(from)).slice(0, 24)}.part`);
      const there = await client.size(waiting).catch(() => 0);
      if (there > 0 && there < size) await client.appendFrom(from, waiting, { localStart: there });
      else if (there !== size || size === 0) await client.uploadFrom(from, waiting);
      const arrived = await client.size(waiting);
      if (arrived !== size) throw unreachable(url, `${arrived} of ${size} bytes arrived`);
      await client.rename(waiting, path).catch(async () => {
        // Some servers do not rename onto an existing file.
        await client.remove(path, true);
        await client.rename(waiting, path);
      });
    });
  },
};

function remotePath(url: URL): string {
  return pathOf(url).slice(1);
}

async function lookOf(client: Client, path: string): Promise<{ bytes: number; version: string | undefined }> {
  const bytes = await client.size(path);
  const changed = await client.lastMod(path).catch(() => undefined);
  return { bytes, version: changed && `${bytes} ${changed.toISOString()}` };
}

async function contentOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

async function session<T>(
  url: URL,
  direction: Direction,
  { login, ca, signal }: UrlOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(IDLE_MS);
  const stop = () => client.close();
  signal?.addEventListener('abort', stop);
  try {
    const secure = schemeOf(url) === 'ftps';
    const port = url.port === '' ? 21 : Number(url.port);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    await client.access({
      host,
      port,
      ...(login === undefined ? {} : { user: login.user, password: login.password }),
      secure: secure && port === IMPLICIT_PORT ? 'implicit' : secure,
      ...(secure ? { secureOptions: { servername: host, ...(ca ? { ca: [...rootCertificates, ca] } : {}) } } : {}),
    });
    return await work(client);
  } catch (thrown) {
    throw meaning(url, direction, login !== undefined, thrown);
  } finally {
    signal?.removeEventListener('abort', stop);
    client.close();
  }
}

/** Codes of RFC 959, 4.2: 4xx may pass, 5xx will not; 530 is about the log-in; 522, 534 and 550 may ask for TLS. */
function meaning(url: URL, direction: Direction, had: boolean, thrown: unknown): GryphusError {
  if (thrown instanceof GryphusError) return thrown;
  if (!(thrown instanceof FTPError)) return ofConnection(url, direction, asError(thrown));
  // The server's own answer, which never repeats a password that we sent.
  const message = thrown.message.replace(/\s+/g, ' ').slice(0, 200);
  if (thrown.code >= 500 && /encrypt|SSL|TLS/i.test(message)) {
    return refused(url, direction, `${message} (write ftps:// in place of ftp://)`);
  }
  if (thrown.code === 530 || thrown.code === 331 || thrown.code === 332)
    return needsLogin(url, direction, had, message);
  if (thrown.code === 552) return unreachable(url, message, thrown);
  return thrown.code >= 500 ? refused(url, direction, message) : unreachable(url, message, thrown);
}
