import { connect, createServer, type Socket } from 'node:net';
import { asError, GryphusError } from '../errors.ts';
import { relay } from './relay.ts';
import { acceptHome } from './secure.ts';

export interface PortWayOptions {
  /** Address and port to listen at; port 0: any that is free. */
  readonly host: string;
  readonly port: number;
  readonly keyOf: (worker: string) => Buffer | undefined;
  /** The socket at home that workers' links are led to. */
  readonly desk: string;
  readonly log: (message: string, facts?: object) => void;
}

export interface PortWay {
  readonly port: number;
  close(): void;
}

/** Anybody can knock at a port: so many who have not shown a token yet are heard at once. */
const MOST_STRANGERS = 200;
const PATIENCE_MS = 15_000;

/** The agent's own port for workers. 'conflict' where it cannot be had. */
export async function openPortWay({ host, port, keyOf, desk, log }: PortWayOptions): Promise<PortWay> {
  const open = new Set<Socket>();
  let strangers = 0;
  const server = createServer((raw) => {
    if (strangers >= MOST_STRANGERS) {
      raw.destroy();
      return;
    }
    open.add(raw);
    raw.once('close', () => open.delete(raw));
    raw.setNoDelay(true);
    raw.setKeepAlive(true, 30_000);
    strangers++;
    acceptHome(raw, { keyOf, patienceMs: PATIENCE_MS })
      .finally(() => strangers--)
      .then(
        ({ worker, link }) => {
          log('a worker came home', { worker, way: 'port' });
          relay(link, connect(desk));
        },
        (thrown: unknown) => log('a stranger', { way: 'port', why: asError(thrown).message }),
      );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(new GryphusError('conflict', `Workers' port ${host}:${port} cannot be had: ${cause.message}.`, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
