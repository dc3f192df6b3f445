import { connect, createServer, type Socket } from 'node:net';
import { GryphusError } from '../errors.ts';
import { relay } from './relay.ts';

export interface PortWayOptions {
  /** Address and port to listen at; port 0: any that is free. */
  readonly host: string;
  readonly port: number;
  /** The socket at home that workers' links are led to; who a worker is shows there. */
  readonly desk: string;
}

export interface PortWay {
  readonly port: number;
  close(): void;
}

/** Anybody can knock at a port: who has not shown a token soon is sent away at home, and never more than so many are open. */
const MOST = 20_000;

/** The agent's own port for workers. 'conflict' where it cannot be had. */
export async function openPortWay({ host, port, desk }: PortWayOptions): Promise<PortWay> {
  const open = new Set<Socket>();
  const server = createServer((raw) => {
    open.add(raw);
    raw.once('close', () => open.delete(raw));
    raw.setNoDelay(true);
    raw.setKeepAlive(true, 30_000);
    relay(raw, connect(desk));
  });
  server.maxConnections = MOST;
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
