import { existsSync, linkSync, rmSync, statSync } from 'node:fs';
import { socketAnswers } from './socket-answers.ts';

/** Gives a listening socket the name that all look for; false if it is that of another server that answers. */
export async function takeName(own: string, socket: string): Promise<boolean> {
  for (;;) {
    try {
      linkSync(own, socket);
      return true;
    } catch (thrown) {
      if (!existsSync(socket)) throw thrown;
    }
    if (await socketAnswers(socket)) return false;
    rmSync(socket, { force: true });
  }
}

export function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}
