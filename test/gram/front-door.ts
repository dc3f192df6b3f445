import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { NO_RESUMPTION } from '../../src/credentials/gsi/connect.ts';
import { takeProxy } from '../../src/credentials/gsi/delegate.ts';
import { peerChain } from '../../src/credentials/gsi/peer.ts';
import { Wire } from '../../src/credentials/gsi/wire.ts';
import type { Credential } from '../../src/credentials/x509/proxy-file.ts';
import type { Gatekeeper } from '../sites/gatekeeper.ts';

/** How a gatekeeper may behave; `good`: like the real one behind it. */
export type Manner = keyof typeof ANSWERS | 'good' | 'leaves' | 'stalls' | 'no TLS' | 'leaves in TLS' | 'bad request';

const head = (status: string, length: number) => `HTTP/1.1 ${status}\r\nContent-Length: ${length}\r\n\r\n`;
const whole = (body: string) => `${head('200 OK', Buffer.byteLength(body))}${body}`;

/** What it answers to a request before it closes. `undefined`: it does not answer and does not close. */
const ANSWERS = {
  half: ['HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nprotocol-v'],
  nothing: [],
  garbage: [`${'\u00ff'.repeat(100)}\r\n\r\n`],
  endless: Array.from({ length: 3000 }, () => 'x'.repeat(1000)),
  silence: undefined,
  'another status': [head('500 Internal Server Error', 0)],
  'no attributes': [whole('hello\r\n')],
  'no contact': [whole('protocol-version: 2\r\nstatus: 110\r\n\0')],
  'no URL': [whole('protocol-version: 2\r\nstatus: 110\r\njob-manager-url: nowhere\r\n\0')],
} as const;

/** A gate in front of the real gatekeeper, whose behaviour can be changed. */
export interface FrontDoor {
  readonly address: string;
  manner: Manner;
  /** How many connections there have been. */
  readonly visits: number;
  /** The proxies that were delegated to it. */
  readonly taken: readonly Credential[];
  close(): void;
}

export async function openFrontDoor(gate: Pick<Gatekeeper, 'host' | 'port'>, manner: Manner): Promise<FrontDoor> {
  const taken: Credential[] = [];
  const open = new Set<Socket>();
  let visits = 0;
  const [cert, key] = [readFileSync(gate.host.cert), readFileSync(gate.host.key)];

  const serve = async (raw: Socket): Promise<void> => {
    const manner = door.manner;
    if (manner === 'stalls') return;
    if (manner === 'leaves') return void raw.destroy();
    if (manner === 'no TLS') return void raw.end('SSH-2.0-OpenSSH_9.2\r\n');
    if (manner === 'good') {
      const there = connect(gate.port, '127.0.0.1');
      open.add(there);
      for (const one of [raw, there]) one.on('error', () => undefined);
      raw.pipe(there).pipe(raw);
      return;
    }
    if (manner === 'leaves in TLS') return void raw.once('data', () => raw.destroy());
    const options = { isServer: true, cert, key, requestCert: true, rejectUnauthorized: false, ...NO_RESUMPTION };
    const socket = new TLSSocket(raw, options);
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('secure', resolve));
    const wire = new Wire(socket, { label: 'the client', protocol: 'GSI' }, true);
    const [first, ...rest] = peerChain(socket);
    await wire.send(Buffer.from([0]));
    const flag = (await wire.bytes(1)).toString();
    if (manner === 'bad request') return void socket.end(Buffer.from('30050201010500', 'hex'));
    if (flag === 'D' && first) taken.push(await takeProxy(wire, [first, ...rest]));
    await wire.upTo('\r\n\r\n', 10_000);
    const answer = ANSWERS[manner];
    if (answer === undefined) return;
    for (const part of answer) await wire.send(Buffer.from(part));
    socket.end();
  };

  const server = createServer((socket) => {
    open.add(socket);
    visits += 1;
    socket.on('error', () => undefined);
    serve(socket).catch(() => undefined);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const door: FrontDoor = {
    address: `localhost:${(server.address() as AddressInfo).port}`,
    manner,
    get visits() {
      return visits;
    },
    taken,
    close() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
  return door;
}
