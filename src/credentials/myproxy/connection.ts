import type { GryphusError } from '../../errors.ts';
import { greet, withGsi } from '../gsi/connect.ts';
import type { Wire } from '../gsi/wire.ts';
import { type Certificate, readCertificate } from '../x509/certificate.ts';
import { readDer } from '../x509/der.ts';
import type { Credential } from '../x509/proxy-file.ts';
import type { Trust } from '../x509/trust.ts';
import { parseResponse, type Response } from './protocol.ts';

export interface MyProxyServer {
  readonly host: string;
  /** 7512 by default. */
  readonly port?: number;
  /** The server's subject, if it does not match the host name. */
  readonly serverDn?: string;
  readonly trust: Trust;
  /** Timeout of a whole exchange in milliseconds; 30 s by default. */
  readonly timeoutMs?: number;
}

const LARGEST = 64 * 1024;
const MOST_CERTIFICATES = 32;

/**
 * One exchange with a MyProxy server over TLS: checks its identity before sending anything, exchanges GSI's first
 * bytes, then calls `talk`. Each failure is one GryphusError: 'site-unreachable' and 'timeout' (try later),
 * 'protocol-error' (not a MyProxy server), 'host-key-changed' (not the server that we expect).
 */
export async function exchange<T>(
  server: MyProxyServer,
  client: Credential | undefined,
  talk: (wire: MyProxyWire) => Promise<T>,
): Promise<T> {
  const { host, port = 7512, serverDn, trust, timeoutMs } = server;
  const target = {
    host,
    port,
    trust,
    label: `The MyProxy server ${host}:${port}`,
    protocol: "MyProxy's protocol",
    expect:
      serverDn === undefined
        ? ({ is: 'host', host, remedy: (dn: string) => `set server_dn = "${dn}"` } as const)
        : ({ is: 'subject', dn: serverDn } as const),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
  return await withGsi(target, client, async (wire) => {
    await greet(wire, '0');
    return await talk(new MyProxyWire(wire));
  });
}

/** MyProxy's messages on a wire. */
export class MyProxyWire {
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  send(bytes: Uint8Array): Promise<void> {
    return this.#wire.send(bytes);
  }

  bytes(count: number): Promise<Buffer> {
    return this.#wire.bytes(count);
  }

  /** One DER value. If an error response comes in its place, `respond` throws it. */
  async der(respond: (response: Response) => void): Promise<Buffer> {
    await this.#errorInstead(respond);
    return await this.#wire.der();
  }

  /** A count followed by that many certificates, leaf first. */
  async certificates(respond: (response: Response) => void): Promise<readonly [Certificate, ...Certificate[]]> {
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

  async response(): Promise<Response> {
    const text = (await this.#wire.upTo('\0', LARGEST)).subarray(0, -1).toString('utf8');
    const response = parseResponse(text);
    if (response === undefined) throw this.nonsense();
    return response;
  }

  nonsense(cause?: unknown): GryphusError {
    return this.#wire.nonsense(cause);
  }

  /** The `V` of VERSION, where data should be, begins an error response. */
  async #errorInstead(respond: (response: Response) => void): Promise<void> {
    let first: number | undefined;
    await this.#wire.until((unread) => {
      first = unread[0];
      return unread.length > 0;
    });
    if (first !== 0x56) return;
    respond(await this.response());
    throw this.nonsense();
  }
}
