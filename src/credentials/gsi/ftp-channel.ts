import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { GryphusError } from '../../errors.ts';
import { oneLine } from '../../util/plain-text.ts';
import type { Credential } from '../x509/proxy-file.ts';
import type { Trust } from '../x509/trust.ts';
import { NO_RESUMPTION, tlsCredential } from './connect.ts';
import { checkPeer } from './peer.ts';

export interface GsiFtpTarget {
  readonly host: string;
  readonly port: number;
  readonly credential: Credential;
  readonly trust: Trust;
  /** How long the server may send nothing, in milliseconds, before it counts as gone. */
  readonly idleMs: number;
}

/**
 * The transport below TLS, for use inside a text protocol: sends what TLS writes in whole flights and receives by
 * `push`.
 */
class Flights extends Duplex {
  readonly #send: (flight: Buffer) => void;
  #waiting: Buffer[] = [];

  constructor(send: (flight: Buffer) => void) {
    super();
    this.#send = send;
  }

  override _read(): void {
    // Received data is pushed on arrival.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#waiting.push(chunk);
    if (this.#waiting.length === 1) setImmediate(() => this.#flush());
    done();
  }

  #flush(): void {
    const flight = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#send(flight);
  }
}

/**
 * A GridFTP server's control channel after `AUTH GSSAPI` (RFC 2228): commands are sent as `ENC`, replies arrive as 63x,
 * and the user of this stream sees plain FTP. Behaves as much like a socket as an FTP client needs.
 */
export class GsiFtpChannel extends Duplex {
  readonly #raw: Socket;
  readonly #target: GsiFtpTarget;
  readonly #flights: Flights;
  /** Set once the server has said that it speaks GSSAPI. */
  #tls: TLSSocket | undefined;
  #step: 'greeting' | 'auth' | 'handshake' | 'open' = 'greeting';
  #opened: () => void = () => undefined;
  #failed: (error: Error) => void = () => undefined;

  private constructor(target: GsiFtpTarget) {
    super();
    this.#target = target;
    const { host, port } = target;
    this.#raw = connectTcp({ host, port });
    this.#flights = new Flights((flight) => {
      const word = this.#step === 'open' ? 'ENC' : 'ADAT';
      this.#raw.write(`${word} ${flight.toString('base64')}\r\n`);
    });
    createInterface({ input: this.#raw, crlfDelay: Number.POSITIVE_INFINITY })
      .on('line', (line) => this.#line(line))
      // It repeats the socket's errors, which are handled below.
      .on('error', () => undefined);
    this.#raw.on('error', (error) => this.destroy(error));
    this.#raw.on('timeout', () => this.emit('timeout'));
    this.#raw.on('close', () => this.destroy(new Error('the server closed the connection')));
  }

  /** Connects, authenticates both ends, and resolves with the channel before any log-in. */
  static open(target: GsiFtpTarget): Promise<GsiFtpChannel> {
    const channel = new GsiFtpChannel(target);
    return new Promise((resolve, reject) => {
      channel.#opened = () => {
        channel.#raw.setTimeout(0);
        channel.off('timeout', silent);
        resolve(channel);
      };
      channel.#failed = reject;
      const silent = () => channel.destroy(new Error(`no answer for ${target.idleMs / 1000} s`));
      channel.once('timeout', silent);
      channel.#raw.setTimeout(target.idleMs);
    });
  }

  get remoteAddress(): string | undefined {
    return this.#raw.remoteAddress;
  }

  get remoteFamily(): string | undefined {
    return this.#raw.remoteFamily;
  }

  get localPort(): undefined {
    return undefined;
  }

  setTimeout(ms: number): this {
    this.#raw.setTimeout(ms);
    return this;
  }

  setKeepAlive(on: boolean): this {
    this.#raw.setKeepAlive(on);
    return this;
  }

  override _read(): void {
    // Data from the server is pushed on arrival.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#tls?.write(chunk, done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#tls?.destroy();
    this.#flights.destroy();
    this.#raw.destroy();
    if (this.#step === 'open') return done(error);
    this.#failed(error ?? new Error('the connection was closed'));
    done(null);
  }

  #startTls({ credential, host }: GsiFtpTarget): TLSSocket {
    const own = tlsCredential(credential);
    const tls = connectTls({
      ...own.options,
      ...NO_RESUMPTION,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      socket: this.#flights,
      // Node cannot verify the grid's chains; `checkPeer` does.
      rejectUnauthorized: false,
    });
    own.done();
    tls.on('error', (error) => this.destroy(error));
    tls.on('data', (bytes: Buffer) => (this.#step === 'open' ? this.push(bytes) : this.#greeted(tls, bytes)));
    return tls;
  }

  /** After the handshake, GSI sends a NUL; we reply that we do not delegate. */
  #greeted(tls: TLSSocket, bytes: Buffer): void {
    const { host, trust } = this.#target;
    const label = `The GridFTP server ${host}`;
    try {
      if (bytes[0] !== 0) throw new GryphusError('protocol-error', `${label} does not speak GSI's protocol.`);
      checkPeer(tls, trust, { is: 'host', host, remedy: (dn) => `name the host that ${dn} names` }, label);
      tls.write('0');
    } catch (thrown) {
      this.destroy(thrown as Error);
    }
  }

  #line(line: string): void {
    const [, code, text = ''] = /^(\d{3})[ -](.*)$/.exec(line) ?? [];
    if (this.#step === 'open') {
      // Replies outside the protection could come from anybody.
      if (code?.startsWith('63')) this.#flights.push(Buffer.from(text, 'base64'));
      return;
    }
    if (code === '220' && this.#step === 'greeting') {
      if (line.startsWith('220-')) return;
      this.#step = 'auth';
      this.#raw.write('AUTH GSSAPI\r\n');
    } else if (code === '334' && this.#step === 'auth') {
      this.#step = 'handshake';
      this.#tls = this.#startTls(this.#target);
    } else if ((code === '335' || code === '235') && this.#step === 'handshake') {
      const token = /^ADAT=(.*)$/.exec(text)?.[1];
      if (token !== undefined) this.#flights.push(Buffer.from(token, 'base64'));
      if (code === '235') {
        this.#step = 'open';
        this.#opened();
      }
    } else if (code === undefined || code >= '400') {
      this.destroy(new GsiFtpRefusal(Number(code ?? 0), oneLine(text || line)));
    }
  }
}

/** The server rejected the authentication. */
export class GsiFtpRefusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
