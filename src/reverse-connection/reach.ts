import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Connects to a socket. Rejects if there is no answer within `patienceMs`. */
export function reach(to: NetConnectOpts, patienceMs: number): Promise<Socket> {
  const socket = connect(to);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${patienceMs / 1000} s`)), patienceMs);
    socket.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.setNoDelay(true);
      // A node that lost its network sends nothing; keepalive detects it.
      socket.setKeepAlive(true, 30_000);
      resolve(socket);
    });
  });
}
