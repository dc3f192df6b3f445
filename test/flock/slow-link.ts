import { connect, createServer, type Server, type Socket } from 'node:net';

/** A TCP connection with a delay, which can be cut. */
export class SlowLink {
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, sockets: Set<Socket>, isCut: { now: () => boolean }) {
    this.#server = server;
    this.#sockets = sockets;
    isCut.now = () => this.#isCut;
    const address = server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
  }

  static async open(to: number, delayMs: number): Promise<SlowLink> {
    const sockets = new Set<Socket>();
    const isCut = { now: () => false };
    const server = createServer((near) => {
      if (isCut.now()) return void near.destroy();
      const far = connect(to, '127.0.0.1');
      for (const [from, into] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on('data', (data) => setTimeout(() => into.write(data), delayMs));
        from.on('error', () => into.destroy());
        from.on('close', () => {
          sockets.delete(from);
          setTimeout(() => into.destroy(), delayMs);
        });
      }
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return new SlowLink(server, sockets, isCut);
  }

  /** Nothing passes for so long. */
  cut(ms: number): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
    setTimeout(() => {
      this.#isCut = false;
    }, ms);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
