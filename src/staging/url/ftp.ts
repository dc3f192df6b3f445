import { rootCertificates } from 'node:tls';
import { Client, FTPError } from 'basic-ftp';
import { asError, GryphusError } from '../../errors.ts';
import type { UrlFetcher, UrlOptions } from './contract.ts';
import { pathOf, schemeOf } from './file-url.ts';
import { download, hearRefusals, lookAt, makeDirectories, removeAt, upload } from './ftp-files.ts';
import { type TransferDirection, needsLogin, ofConnection, refused, unreachable } from './trouble.ts';

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
      return await download(client, url, { path, to, have: options.have }, async ({ bytes }, before) => {
        const after = await lookAt(client, path);
        return after.bytes === before.bytes && after.version === before.version && bytes === after.bytes
          ? undefined
          : `${bytes} bytes arrived of ${after.bytes}, or it changed during the transfer`;
      });
    });
  },

  store(from, url, options) {
    return session(url, 'store', options, async (client) => {
      await makeDirectories(client, remotePath(url));
      await upload(client, from, remotePath(url), async (waiting, { bytes }) => {
        const arrived = await client.size(waiting);
        if (arrived !== bytes) throw unreachable(url, `${arrived} of ${bytes} bytes arrived`);
      });
    });
  },

  remove(url, what, options) {
    return session(url, 'store', options, (client) => removeAt(client, remotePath(url), what));
  },
};

function remotePath(url: URL): string {
  return pathOf(url).slice(1);
}

async function session<T>(
  url: URL,
  direction: TransferDirection,
  { login, ca, signal }: UrlOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(IDLE_MS);
  hearRefusals(client);
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
function meaning(url: URL, direction: TransferDirection, had: boolean, thrown: unknown): GryphusError {
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
