import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { asError, GryphusError } from '../errors.ts';
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
  const close = (): void => {
    server.close();
    for (const socket of open) socket.destroy();
  };
  return new Promise((resolve, reject) => {
    server.once('error', (thrown) => {
      const cause = asError(thrown);
      reject(new GryphusError('site-refused', `This machine cannot listen: ${cause.message}.`, { cause }));
    });
    if (at.kind === 'socket') {
      rmSync(at.path, { force: true });
      const before = process.umask(0o177);
      server.listen(at.path, () => resolve({ place: at, closed, close }));
      process.umask(before);
      return;
    }
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      resolve({ place: { kind: 'port', port }, closed, close });
    });
  });
}
