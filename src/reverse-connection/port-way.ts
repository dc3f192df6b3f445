import { createServer, type Server, type Socket } from 'node:net';
import { asError, GryphusError } from '../errors.ts';
import { acceptHome, type Guest } from './secure.ts';

export interface PortWayOptions {
  /** The address and port to listen on; port 0: any free port. */
  readonly host: string;
  readonly port: number;
  /** Gets each guest with a valid token. */
  readonly welcome: (guest: Guest) => void;
  readonly keyOf: (worker: string) => Buffer | undefined;
  /** File descriptors that this process may have open. */
  readonly descriptors: number;
  readonly onTurnedAway: (message: string) => void;
  /** How long a guest has to show a token, in milliseconds. */
  readonly patienceMs?: number;
}

export interface PortWay {
  readonly port: number;
  close(): void;
}

const PATIENCE_MS = 15_000;
/** The most connections from one address without a token. */
const PER_ADDRESS = 32;
/** The most such connections in all. */
const STRANGERS = 512;
/** Descriptors reserved for everything else. */
const OWN = 64;
/** A worker's connection, and one to the central manager. */
const OF_A_GUEST = 2;

/**
 * The agent's own port for workers, which anyone can connect to. A stranger costs one descriptor, and if there are too
 * many, the oldest is dropped, since a worker shows its token at once. 'conflict' if the port cannot be opened.
 */
export async function openPortWay(options: PortWayOptions): Promise<PortWay> {
  const { host, port, welcome, keyOf, descriptors, onTurnedAway, patienceMs = PATIENCE_MS } = options;
  const descriptorsLeft = Math.max(0, descriptors - OWN);
  const strangers = new Strangers(Math.max(1, Math.min(STRANGERS, Math.floor(descriptorsLeft / 4))));
  const guests = new Set<Socket>();
  const most = Math.floor((descriptorsLeft - strangers.most) / OF_A_GUEST);

  const knock = async (raw: Socket): Promise<void> => {
    raw.setNoDelay(true);
    raw.setKeepAlive(true, 30_000);
    // A connection that has already gone has no address.
    raw.on('error', () => undefined);
    strangers.add(raw);
    try {
      const guest = await acceptHome(raw, { keyOf, patienceMs });
      strangers.delete(raw);
      if (guests.size >= most) throw new Error(`at most ${most} workers can connect here`);
      guests.add(raw);
      raw.once('close', () => guests.delete(raw));
      welcome(guest);
    } catch (thrown) {
      strangers.delete(raw);
      raw.destroy();
      onTurnedAway(asError(thrown).message);
    }
  };

  const server = createServer((raw) => void knock(raw));
  server.maxConnections = most + strangers.most;
  return {
    port: await listen(server, host, port),
    close() {
      server.close();
      strangers.close();
      for (const guest of guests) guest.destroy();
    },
  };
}

/** Connections without a token, oldest first. */
class Strangers {
  readonly most: number;
  readonly #from = new Map<string, Set<Socket>>();
  readonly #addresses = new Map<Socket, string>();

  constructor(most: number) {
    this.most = most;
  }

  add(raw: Socket): void {
    const address = neighbourhood(raw.remoteAddress ?? '');
    const neighbours = this.#from.get(address) ?? new Set();
    if (neighbours.size >= PER_ADDRESS) this.#sendAway(neighbours);
    else if (this.#addresses.size >= this.most) this.#sendAway(this.#largest());
    neighbours.add(raw);
    this.#from.set(address, neighbours);
    this.#addresses.set(raw, address);
  }

  delete(raw: Socket): void {
    const address = this.#addresses.get(raw);
    if (address === undefined) return;
    this.#addresses.delete(raw);
    const neighbours = this.#from.get(address);
    neighbours?.delete(raw);
    if (neighbours?.size === 0) this.#from.delete(address);
  }

  close(): void {
    for (const raw of this.#addresses.keys()) raw.destroy();
  }

  #largest(): ReadonlySet<Socket> {
    let found: ReadonlySet<Socket> = new Set();
    for (const neighbours of this.#from.values()) if (neighbours.size > found.size) found = neighbours;
    return found;
  }

  #sendAway([oldest]: ReadonlySet<Socket>): void {
    if (!oldest) return;
    this.delete(oldest);
    oldest.destroy();
  }
}

/** What counts as one address: for IPv6 the network, because a host can have any number of addresses in it. */
export function neighbourhood(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped?.[1] !== undefined) return mapped[1];
  if (!address.includes(':')) return address;
  const [front = '', back] = address.split('::');
  const before = front === '' ? [] : front.split(':');
  const after = back === undefined || back === '' ? [] : back.split(':');
  const zeros = back === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: zeros }, () => '0'), ...after].slice(0, 4).join(':');
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(
        new GryphusError('conflict', `Cannot listen for workers on ${host}:${port}: ${cause.message}.`, { cause }),
      );
    });
    server.listen(port, host, resolve);
  });
  // Later errors belong to single connections.
  server.on('error', () => undefined);
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}
