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

/**
 * One exchange with a MyProxy server: TLS, its identity checked before a byte is sent, GSI's first bytes, then
 * `talk`. Each failure is one GryphusError: 'site-unreachable' and 'timeout' (try later), 'protocol-error' (it is no
 * MyProxy server), 'host-key-changed' (it is not whom we believe).
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

  /** One value of DER; or an error response in its place, which is thrown by `respond`. */
  async der(respond: (response: Response) => void): Promise<Buffer> {
    await this.#errorInstead(respond);
    return await this.#wire.der();
  }

  /** A count and so many certificates, the leaf first. */
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

  /** `V` of VERSION where data should be. */
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
