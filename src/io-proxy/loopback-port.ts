import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** How long a connection may take to show its token, milliseconds. */
const TOKEN_MS = 10_000;
/** Connections that have not shown a token. Every user of the machine can open them; a job shows its token at once. */
const MOST_STRANGERS = 64;

/** A port of the loopback interface for the processes of running jobs, which show a token there. */
export class LoopbackPort {
  readonly #greet: (socket: Socket, known: () => void) => void;
  /** In the order in which they came. */
  readonly #strangers = new Set<Socket>();
  #server: Server | undefined;
  #listening: Promise<number> | undefined;
  #number = 0;

  /** `greet` reads from a new connection, and calls `known` when it has shown a token. */
  constructor(greet: (socket: Socket, known: () => void) => void) {
    this.#greet = greet;
  }

  /** Opens the port, once. */
  async listen(): Promise<void> {
    this.#listening ??= this.#bind();
    this.#number = await this.#listening;
  }

  /** 0 before `listen` has resolved. */
  get number(): number {
    return this.#number;
  }

  close(): void {
    this.#server?.close();
    for (const socket of this.#strangers) socket.destroy();
  }

  #bind(): Promise<number> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#meet(socket));
    this.#server = server;
    server.unref();
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
  }

  #meet(socket: Socket): void {
    socket.on('error', () => undefined);
    const [oldest] = this.#strangers;
    if (this.#strangers.size >= MOST_STRANGERS) oldest?.destroy();
    this.#strangers.add(socket);
    const late = setTimeout(() => socket.destroy(), TOKEN_MS);
    const known = () => {
      clearTimeout(late);
      this.#strangers.delete(socket);
    };
    socket.once('close', known);
    this.#greet(socket, known);
  }
}

/** Tokens are kept and looked up by their digests, so that the time of a look-up tells nothing of them. */
export function digestOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
