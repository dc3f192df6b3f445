import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { asError, GryphusError } from '../errors.ts';
import { listenAt } from '../util/listen-at.ts';
import type { ListenAt, Listening } from './contract.ts';

/** A listener on this machine: a socket file accessible only to us, or a loopback port. */
export function listenHere(at: ListenAt, onStream: (stream: Duplex) => void): Promise<Listening> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    onStream(socket);
  });
  const closed = new Promise<void>((resolve) => void server.once('close', resolve));
  const close = (end: () => void): void => {
    end();
    for (const socket of open) socket.destroy();
  };
  return new Promise((resolve, reject) => {
    const refused = (thrown: unknown): void => {
      const cause = asError(thrown);
      reject(new GryphusError('site-refused', `This machine cannot listen: ${cause.message}.`, { cause }));
    };
    if (at.kind === 'socket') {
      void listenAt(server, at.path).then((end) => resolve({ place: at, closed, close: () => close(end) }), refused);
      return;
    }
    server.once('error', refused).listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      resolve({ place: { kind: 'port', port }, closed, close: () => close(() => server.close()) });
    });
  });
}
