import type { Socket } from 'node:net';
import { Client, FTPError } from 'basic-ftp';
import { GsiFtpChannel, GsiFtpRefusal } from '../../credentials/gsi/ftp-channel.ts';
import { defaultFiles, loadProxy } from '../../credentials/store.ts';
import { openCaDirectory } from '../../credentials/x509/ca-directory.ts';
import { asError, GryphusError } from '../../errors.ts';
import type { UrlFetcher, UrlOptions } from './contract.ts';
import { pathOf } from './file-url.ts';
import { download, hearRefusals, makeDirectories, removeAt, upload } from './ftp-files.ts';
import { sha256Of } from '../sha256.ts';
import { type TransferDirection, ofConnection, proxyEnded, refused, unreachable } from './trouble.ts';

const IDLE_MS = 60_000;
/** The port that IANA assigned to gsiftp. */
const PORT = 2811;

/**
 * GridFTP (GFD.20) with the job's proxy. The control channel uses GSSAPI; the data channel is clear (`DCAU N`, `PROT
 * C`), so all content is verified by the server's own SHA-256 (`CKSM`). A path starts at the root or, with `/~/`, at
 * the account's home.
 */
export const gsiftpFetcher = {
  schemes: ['gsiftp'],

  fetch(url, to, options) {
    return session(url, 'fetch', options, async (client) => {
      const path = remotePath(url);
      return await download(client, url, { path, to, have: options.have }, async (arrived, before) => {
        const said = await checksum(client, path);
        return arrived.bytes === before.bytes && (said === undefined || said === (await sha256Of(arrived.path)))
          ? undefined
          : "the received file differs from the server's, or it changed during the transfer";
      });
    });
  },

  store(from, url, options) {
    return session(url, 'store', options, async (client) => {
      await makeDirectories(client, remotePath(url));
      await upload(client, from, remotePath(url), async (waiting, { sha256 }) => {
        const said = await checksum(client, waiting);
        if (said === undefined || said === sha256) return;
        await client.remove(waiting, true);
        throw unreachable(url, 'the file at the server differs from what was sent');
      });
    });
  },

  remove(url, what, options) {
    return session(url, 'store', options, (client) => removeAt(client, remotePath(url), what));
  },
} satisfies UrlFetcher;

function remotePath(url: URL): string {
  const path = pathOf(url);
  return path.startsWith('/~/') ? path.slice(3) : path;
}

/** The server's SHA-256 of the file; `undefined` if it has no such command (5xx of RFC 959 for an unknown command). */
async function checksum(client: Client, path: string): Promise<string | undefined> {
  try {
    const { message } = await client.send(`CKSM SHA256 0 -1 ${path}`);
    return /^213[ -]\s*([0-9a-f]{64})\b/im.exec(message)?.[1]?.toLowerCase();
  } catch (thrown) {
    if (thrown instanceof FTPError && [500, 501, 502, 504].includes(thrown.code)) return undefined;
    throw thrown;
  }
}

async function session<T>(
  url: URL,
  direction: TransferDirection,
  { proxyFile, signal }: UrlOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(IDLE_MS);
  hearRefusals(client);
  const stop = () => client.close();
  const file = proxyFile ?? defaultFiles().proxy;
  let end: number | undefined;
  signal?.addEventListener('abort', stop);
  try {
    const credential = loadProxy(file);
    end = Math.min(...credential.chain.map(({ notAfter }) => notAfter));
    const channel = await GsiFtpChannel.open({
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? PORT : Number(url.port),
      credential,
      trust: openCaDirectory(defaultFiles().trust),
      idleMs: IDLE_MS,
    });
    // The channel has everything that the client uses of a socket.
    client.ftp.socket = channel as unknown as Socket;
    // The server maps our identity to an account.
    await client.login(':globus-mapping:', 'dummy');
    await client.useDefaultSettings();
    await client.send('DCAU N');
    await client.send('PROT C');
    return await work(client);
  } catch (thrown) {
    const error = meaning(url, direction, thrown);
    // An expired proxy explains any error of the server, even a broken connection.
    if (error.code === 'disk-full' || end === undefined || end * 1000 > Date.now()) throw error;
    throw proxyEnded(url, direction, file, end);
  } finally {
    signal?.removeEventListener('abort', stop);
    client.close();
  }
}

function meaning(url: URL, direction: TransferDirection, thrown: unknown): GryphusError {
  const error = asError(thrown);
  if (thrown instanceof GryphusError) {
    const final = ['url-unreachable', 'input-missing', 'output-unwritable', 'disk-full'].includes(thrown.code);
    return final ? thrown : refused(url, direction, thrown.message.replace(/\.$/, ''));
  }
  const message = error.message.replace(/\s+/g, ' ').slice(0, 300);
  const code = thrown instanceof FTPError || thrown instanceof GsiFtpRefusal ? thrown.code : undefined;
  if (code === undefined)
    return String((error as NodeJS.ErrnoException).code).startsWith('ERR_SSL')
      ? refused(url, direction, 'the server does not accept our proxy')
      : ofConnection(url, direction, error);
  if (code === 530 || code === 535) return refused(url, direction, `the server refused the log-in (${message})`);
  if (code === 552) return unreachable(url, message, error);
  return code >= 500 ? refused(url, direction, message) : unreachable(url, message, error);
}
