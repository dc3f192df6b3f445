import { chmodSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { inodeOf, takeName } from '../util/named-socket.ts';
import { Running } from './running.ts';
import { makeApp } from './server.ts';
import type { Web } from './web.ts';

/** Without a client, the server ends after this time; milliseconds. */
const IDLE_MS = 60_000;
/** How often it looks whether its socket is still there; milliseconds. */
const LOOK_MS = 5000;
/** How long requests that were cut off may take to end; milliseconds. */
const END_MS = 4000;

interface ProgramServer {
  /** Whether it serves; false: another server had the socket already, and this one has ended. */
  readonly serves: boolean;
  /** Resolves when it has ended and no request is being answered. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

/**
 * Serves the interface at a unix socket that only the user can open, and on no port. It ends a minute after its last client
 * has gone and its last request was answered, or when the socket is no longer its own. `web` stays open.
 */
export async function servePrograms(
  web: Web,
  socket: string,
  how: { readonly idleMs: number; readonly lookMs: number } = { idleMs: IDLE_MS, lookMs: LOOK_MS },
): Promise<ProgramServer> {
  const running = new Running();
  const app = makeApp({ web, running });
  const clients = new Set<Socket>();
  let idleSince = Date.now();
  app.server.on('connection', (client) => {
    clients.add(client);
    client.once('close', () => {
      clients.delete(client);
      idleSince = Date.now();
    });
  });
  const own = `${socket}.${process.pid}`;
  // It is its owner's alone from the moment at which it exists.
  const before = process.umask(0o177);
  await app.listen({ path: own }).finally(() => process.umask(before));
  chmodSync(own, 0o600);
  if (!(await takeName(own, socket))) {
    await app.close();
    return { serves: false, ended: Promise.resolve(), end: () => undefined };
  }
  const mine = inodeOf(own);
  rmSync(own);
  const close = async (): Promise<void> => {
    clearInterval(look);
    if (inodeOf(socket) === mine) rmSync(socket, { force: true });
    await app.close();
    await Promise.race([running.ended(), sleep(END_MS, undefined, { ref: false })]);
  };
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  }).then(close);
  const look = setInterval(() => {
    if (clients.size > 0 || running.count > 0) idleSince = Date.now();
    if (Date.now() - idleSince > how.idleMs || inodeOf(socket) !== mine) end();
  }, how.lookMs);
  return { serves: true, ended, end };
}
