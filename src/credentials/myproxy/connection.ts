import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type DetailedPeerCertificate, type TLSSocket } from 'node:tls';
import { asError, type ErrorCode, GryphusError } from '../../errors.ts';
import { oneLine } from '../../util/plain-text.ts';
import { wipe } from '../../util/secret-file.ts';
import { type Certificate, readCertificate } from '../x509/certificate.ts';
import { readDer } from '../x509/der.ts';
import { certificatePem } from '../x509/pem.ts';
import type { Credential } from '../x509/proxy-file.ts';
import type { Trust } from '../x509/trust.ts';
import { verifyChain } from '../x509/verify.ts';
import { parseResponse, type Response } from './protocol.ts';

export interface MyProxyServer {
  readonly host: string;
  /** Default 7512. */
  readonly port?: number;
  /** Its subject, where that is not made of its host's name. */
  readonly serverDn?: string;
  readonly trust: Trust;
  /** Milliseconds for a whole exchange, default 30 s. */
  readonly timeoutMs?: number;
}

const LARGEST = 64 * 1024;
const MOST_CERTIFICATES = 32;
const TLS_CODE: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: ['credential-expired', 'says that our certificate has ended'],
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: ['credential-invalid', 'does not know the authority of our certificate'],
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: ['credential-invalid', 'does not take our certificate'],
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: ['credential-invalid', 'does not take our certificate'],
  ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR: ['credential-invalid', 'does not take our certificate'],
};

/**
 * One exchange with a MyProxy server: TLS, its identity checked before a byte is sent, GSI's first bytes, then
 * `talk`. Each failure is one GryphusError: 'site-unreachable' and 'timeout' (try later), 'protocol-error' (it is no
 * MyProxy server), 'host-key-changed' (it is not whom we believe).
 */
export async function exchange<T>(
  server: MyProxyServer,
  client: Credential | undefined,
  talk: (wire: Wire) => Promise<T>,
): Promise<T> {
  const port = server.port ?? 7512;
  const label = `The MyProxy server ${server.host}:${port}`;
  const key = client && Buffer.from(client.key.export({ type: 'pkcs8', format: 'pem' }));
  const socket = connect({
    host: server.host,
    port,
    ...(isIP(server.host) === 0 ? { servername: server.host } : {}),
    ...(client === undefined || key === undefined
      ? {}
      : { cert: client.chain.map((one) => certificatePem(one.der)).join(''), key }),
    // Node cannot verify the grid's chains; `checkServer` does, before anything is sent.
    rejectUnauthorized: false,
  });
  const wire = new Wire(socket, label);
  const timeoutMs = server.timeoutMs ?? 30_000;
  const timer = setTimeout(
    () => socket.destroy(new GryphusError('timeout', `${label} did not answer within ${timeoutMs / 1000} s.`)),
    timeoutMs,
  );
  try {
    await wire.secured();
    checkServer(socket, server, label);
    const [first] = await wire.bytes(1);
    if (first !== 0) throw wire.nonsense();
    await wire.send(Buffer.from('0'));
    return await talk(wire);
  } finally {
    clearTimeout(timer);
    wipe(key);
    socket.destroy();
  }
}

/** A GSI server's chain, as verified as ours would be; its name is its host's, or the one that is configured. */
function checkServer(socket: TLSSocket, server: MyProxyServer, label: string): void {
  const chain: Certificate[] = [];
  const seen = new Set<string>();
  let at: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (at?.raw !== undefined && !seen.has(at.fingerprint256)) {
    seen.add(at.fingerprint256);
    chain.push(readCertificate(at.raw));
    at = at.issuerCertificate;
  }
  const [leaf, ...rest] = chain;
  if (leaf === undefined) throw new GryphusError('protocol-error', `${label} showed no certificate.`);
  const verdict = verifyChain([leaf, ...rest], server.trust, { now: Date.now() / 1000 });
  const stranger = (why: string, ...suggestions: string[]) =>
    new GryphusError('host-key-changed', `${label} is not trusted: ${why}`, { suggestions });
  if (!verdict.ok) throw stranger(verdict.message);
  if (server.serverDn !== undefined) {
    if (verdict.identity === server.serverDn) return;
    throw stranger(`it is ${verdict.identity}, and not ${server.serverDn}.`);
  }
  const certificate = new X509Certificate(leaf.der);
  const named = isIP(server.host) === 0 ? certificate.checkHost(server.host) : certificate.checkIP(server.host);
  const commonName = /\/CN=(?:host\/|myproxy\/)?([^/]+)$/.exec(verdict.identity)?.[1];
  if (named !== undefined || commonName?.toLowerCase() === server.host.toLowerCase()) return;
  throw stranger(
    `it is ${verdict.identity}, which does not name ${server.host}.`,
    `If that is right, set server_dn = "${verdict.identity}".`,
  );
}

/** Bytes to and from the server. One `send` is one TLS record: GSI's receivers count on it. */
export class Wire {
  readonly #socket: TLSSocket;
  readonly #label: string;
  #failure: Error | undefined;
  #ended = false;
  #wake: (() => void) | undefined;
  #secure = false;
  #buffer = Buffer.alloc(0);

  constructor(socket: TLSSocket, label: string) {
    this.#socket = socket;
    this.#label = label;
    const wake = () => this.#wake?.();
    socket.on('secureConnect', () => {
      this.#secure = true;
      wake();
    });
    socket.on('data', (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      if (this.#buffer.length > 4 * LARGEST) socket.destroy(this.nonsense());
      wake();
    });
    socket.on('error', (error) => {
      this.#failure ??= this.#explain(error);
      wake();
    });
    socket.on('close', () => {
      this.#ended = true;
      wake();
    });
  }

  async #until(ready: () => boolean): Promise<void> {
    while (!ready()) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) throw new GryphusError('protocol-error', `${this.#label} closed the connection in the middle.`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  secured(): Promise<void> {
    return this.#until(() => this.#secure);
  }

  async send(bytes: Uint8Array): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const failed = await new Promise<Error | null | undefined>((resolve) => {
      this.#socket.write(bytes, resolve);
    });
    if (failed) throw this.#failure ?? this.#explain(failed);
  }

  async bytes(count: number): Promise<Buffer> {
    await this.#until(() => this.#buffer.length >= count);
    const taken = Buffer.from(this.#buffer.subarray(0, count));
    this.#buffer = this.#buffer.subarray(count);
    return taken;
  }

  /** One value of DER; or an error response in its place, which is thrown by `respond`. */
  async der(respond: (response: Response) => void): Promise<Buffer> {
    await this.#until(() => this.#buffer.length >= 6);
    await this.#errorInstead(respond);
    const [, first = 0] = this.#buffer;
    const head = first < 0x80 ? 2 : 2 + (first & 0x7f);
    if (this.#buffer[0] !== 0x30 || head > 6) throw this.nonsense();
    const length = first < 0x80 ? first : this.#buffer.readUIntBE(2, first & 0x7f);
    if (length > LARGEST) throw this.nonsense();
    return this.bytes(head + length);
  }

  /** A count and so many certificates, the leaf first. */
  async certificates(respond: (response: Response) => void): Promise<readonly [Certificate, ...Certificate[]]> {
    await this.#until(() => this.#buffer.length >= 1);
    await this.#errorInstead(respond);
    const [count = 0] = await this.bytes(1);
    if (count === 0 || count > MOST_CERTIFICATES) throw this.nonsense();
    const read = async () => {
      const der = await this.der(respond);
      try {
        return readCertificate(readDer(der).raw);
      } catch (cause) {
        throw this.nonsense(cause);
      }
    };
    const first = await read();
    const rest: Certificate[] = [];
    while (rest.length + 1 < count) rest.push(await read());
    return [first, ...rest];
  }

  /** `V` of VERSION where data should be. */
  async #errorInstead(respond: (response: Response) => void): Promise<void> {
    if (this.#buffer[0] !== 0x56) return;
    respond(await this.response());
    throw this.nonsense();
  }

  async response(): Promise<Response> {
    await this.#until(() => this.#buffer.includes(0) || this.#buffer.length > LARGEST);
    const end = this.#buffer.indexOf(0);
    if (end === -1) throw this.nonsense();
    const text = (await this.bytes(end + 1)).subarray(0, end).toString('utf8');
    const response = parseResponse(text);
    if (response === undefined) throw this.nonsense();
    return response;
  }

  nonsense(cause?: unknown): GryphusError {
    return new GryphusError('protocol-error', `${this.#label} does not speak MyProxy's protocol.`, {
      ...(cause === undefined ? {} : { cause }),
      suggestions: ['Check its host and port.'],
    });
  }

  #explain(thrown: Error): GryphusError {
    if (thrown instanceof GryphusError) return thrown;
    const code = (thrown as NodeJS.ErrnoException).code ?? '';
    const known = TLS_CODE[code];
    if (known !== undefined) return new GryphusError(known[0], `${this.#label} ${known[1]}.`);
    if (code.startsWith('ERR_SSL') || code === 'EPROTO') return this.nonsense();
    if (code === 'ECONNRESET' && this.#secure) {
      return new GryphusError('protocol-error', `${this.#label} closed the connection in the middle.`);
    }
    const words = oneLine(asError(thrown).message);
    return new GryphusError('site-unreachable', `${this.#label} cannot be reached: ${words}`, { cause: thrown });
  }
}
