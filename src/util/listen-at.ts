import { renameSync, rmSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname, join } from 'node:path';
import { inodeOf } from './named-socket.ts';

let made = 0;

/**
 * Listens at a socket file that only its owner can use, and takes the place of one that is there already. Resolves to what closes the server
 * and removes the file, unless it is another process's by then. Rejects with the error of the system.
 *
 * Node removes the path of a server that closes, whoever's file stands there: when a directory was replaced, that is its successor's. So the
 * server listens under a short-lived name, by which nothing is found when it closes.
 */
export async function listenAt(server: Server, path: string): Promise<() => void> {
  // Not longer than need be: the system allows some hundred characters.
  const own = join(dirname(path), `n${process.pid.toString(36)}${(made++).toString(36)}`);
  const before = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(own, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } finally {
    process.umask(before);
  }
  let mine: number | undefined;
  try {
    mine = inodeOf(own);
    renameSync(own, path);
  } catch (thrown) {
    server.close();
    throw thrown;
  }
  return () => {
    if (inodeOf(path) === mine) rmSync(path, { force: true });
    server.close();
  };
}
