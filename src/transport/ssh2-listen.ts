import type { Duplex } from 'node:stream';
import type { AcceptConnection, Client, RejectConnection, TcpConnectionDetails, UNIXConnectionDetails } from 'ssh2';
import { asError, GryphusError } from '../errors.ts';
import type { ListenAt, Listening, ListenPlace } from './contract.ts';

/** A remote forward of a connection; it ends when the connection does. */
export async function listenBySsh2(
  client: Client,
  label: string,
  at: ListenAt,
  onStream: (stream: Duplex) => void,
): Promise<Listening> {
  const closed = new Promise<void>((resolve) => void client.once('close', () => resolve()));
  const close = at.kind === 'socket' ? onSocket(client, at.path, onStream) : onPort(client, onStream);
  try {
    const { place, end } = await close;
    return { place, closed, close: end };
  } catch (thrown) {
    const cause = asError(thrown);
    throw new GryphusError('site-refused', `${label} does not forward connections: ${cause.message}.`, { cause });
  }
}

interface Forward {
  readonly place: ListenPlace;
  readonly end: () => void;
}

function onSocket(client: Client, path: string, onStream: (stream: Duplex) => void): Promise<Forward> {
  return new Promise((resolve, reject) => {
    let ended = false;
    // A connection that arrives while the server is being told to stop must not wait forever.
    const take = (info: UNIXConnectionDetails, accept: AcceptConnection, refuse: RejectConnection): void => {
      if (info.socketPath !== path) return;
      if (ended) refuse();
      else onStream(accept());
    };
    client.on('unix connection', take);
    const fail = (error: unknown): void => {
      client.off('unix connection', take);
      reject(asError(error));
    };
    try {
      client.openssh_forwardInStreamLocal(path, (error) => {
        if (error) return fail(error);
        const end = (): void => {
          ended = true;
          quietly(() => client.openssh_unforwardInStreamLocal(path, () => client.off('unix connection', take)));
        };
        resolve({ place: { kind: 'socket', path }, end });
      });
    } catch (thrown) {
      // If the server is not OpenSSH, ssh2 throws before sending anything.
      fail(thrown);
    }
  });
}

function onPort(client: Client, onStream: (stream: Duplex) => void): Promise<Forward> {
  return new Promise((resolve, reject) => {
    client.forwardIn('127.0.0.1', 0, (error, port) => {
      if (error) return reject(error);
      let ended = false;
      const take = (info: TcpConnectionDetails, accept: AcceptConnection, refuse: RejectConnection): void => {
        if (info.destPort !== port) return;
        if (ended) refuse();
        else onStream(accept());
      };
      client.on('tcp connection', take);
      const end = (): void => {
        ended = true;
        quietly(() => client.unforwardIn('127.0.0.1', port, () => client.off('tcp connection', take)));
      };
      resolve({ place: { kind: 'port', port }, end });
    });
  });
}

function quietly(work: () => void): void {
  try {
    work();
  } catch {
    // The connection is gone, and the forward with it.
  }
}
