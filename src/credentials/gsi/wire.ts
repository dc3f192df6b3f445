import type { TLSSocket } from 'node:tls';
import { asError, type ErrorCode, GryphusError } from '../../errors.ts';
import { oneLine } from '../../util/plain-text.ts';

/** How many unread bytes from a peer are buffered at most. */
const MOST_UNREAD = 256 * 1024;
/** The largest DER value accepted; requests and certificates are a few KiB. */
const LARGEST_DER = 64 * 1024;

/** TLS alerts 42, 45, 46, 48 and 51, by which a GSI peer rejects our certificate. */
const TLS_CODE: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: ['credential-expired', 'reports that our certificate has expired'],
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: ['credential-invalid', 'does not know the authority of our certificate'],
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: ['credential-invalid', 'does not accept our certificate'],
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: ['credential-invalid', 'does not accept our certificate'],
  ERR_SSL_TLSV1_ALERT_DECRYPT_ERROR: ['credential-invalid', 'does not accept our certificate'],
};

/** The peer and the protocol, for messages: `The MyProxy server h:7512`, `MyProxy's protocol`. */
export interface WireName {
  readonly label: string;
  readonly protocol: string;
}

/**
 * Bytes to and from a GSI peer. One `send` makes one TLS record because GSI's receivers rely on it. Each failure is one
 * GryphusError: 'site-unreachable', 'protocol-error', 'credential-expired', 'credential-invalid', or the error that the
 * socket was destroyed with.
 */
export class Wire {
  readonly #socket: TLSSocket;
  readonly #name: WireName;
  #failure: Error | undefined;
  #ended = false;
  #wake: (() => void) | undefined;
  #secure: boolean;
  #buffer = Buffer.alloc(0);

  /** `secure`: the handshake is already over (on a server's side). */
  constructor(socket: TLSSocket, name: WireName, secure = false) {
    this.#socket = socket;
    this.#name = name;
    this.#secure = secure;
    const wake = () => this.#wake?.();
    socket.on('secureConnect', () => {
      this.#secure = true;
      wake();
    });
    socket.on('data', (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk]);
      if (this.#buffer.length > MOST_UNREAD) socket.destroy(this.nonsense());
      wake();
    });
    socket.on('error', (error) => {
      this.#failure ??= this.#explain(error);
      wake();
    });
    socket.on('end', () => {
      this.#ended = true;
      wake();
    });
    socket.on('close', () => {
      this.#ended = true;
      wake();
    });
  }

  /** Waits until enough data has arrived. */
  async until(ready: (unread: Buffer) => boolean): Promise<void> {
    await this.#until(() => this.#secure && ready(this.#buffer));
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
    await this.until((unread) => unread.length >= count);
    const taken = Buffer.from(this.#buffer.subarray(0, count));
    this.#buffer = this.#buffer.subarray(count);
    return taken;
  }

  /** Everything up to and including the mark; 'protocol-error' if it does not come within `most` bytes. */
  async upTo(mark: string, most: number): Promise<Buffer> {
    await this.until((unread) => unread.includes(mark) || unread.length > most);
    const at = this.#buffer.indexOf(mark);
    if (at === -1) throw this.nonsense();
    return this.bytes(at + Buffer.byteLength(mark));
  }

  /** One DER value (a request or a certificate). */
  async der(): Promise<Buffer> {
    await this.until((unread) => unread.length >= 6);
    const [, first = 0] = this.#buffer;
    const head = first < 0x80 ? 2 : 2 + (first & 0x7f);
    if (this.#buffer[0] !== 0x30 || head > 6) throw this.nonsense();
    const length = first < 0x80 ? first : this.#buffer.readUIntBE(2, first & 0x7f);
    if (length > LARGEST_DER) throw this.nonsense();
    return this.bytes(head + length);
  }

  nonsense(cause?: unknown): GryphusError {
    return new GryphusError('protocol-error', `${this.#name.label} does not speak ${this.#name.protocol}.`, {
      ...(cause === undefined ? {} : { cause }),
      suggestions: ['Check its host and port.'],
    });
  }

  async #until(ready: () => boolean): Promise<void> {
    while (!ready()) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) throw this.#broken();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #broken(): GryphusError {
    return new GryphusError('protocol-error', `${this.#name.label} closed the connection in the middle.`);
  }

  #explain(thrown: Error): GryphusError {
    if (thrown instanceof GryphusError) return thrown;
    const code = (thrown as NodeJS.ErrnoException).code ?? '';
    const known = TLS_CODE[code];
    if (known !== undefined) return new GryphusError(known[0], `${this.#name.label} ${known[1]}.`);
    if (code.startsWith('ERR_SSL') || code === 'EPROTO') return this.nonsense();
    if (code === 'ECONNRESET' && this.#secure) return this.#broken();
    const message = oneLine(asError(thrown).message);
    return new GryphusError('site-unreachable', `${this.#name.label} cannot be reached: ${message}`, { cause: thrown });
  }
}
