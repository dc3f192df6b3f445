import type { Socket } from 'node:net';

/** How long a connection may stay open when nothing more is to be said on it; milliseconds. */
export const LINGER_MS = 2000;

/** Ends a connection, with what was written to it. A peer that does not end its side, or never reads, is cut off. */
export function endSoon(socket: Socket): void {
  const late = setTimeout(() => socket.destroy(), LINGER_MS);
  late.unref();
  socket.once('close', () => clearTimeout(late));
  socket.end();
}
