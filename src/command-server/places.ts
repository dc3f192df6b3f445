import { join } from 'node:path';
import { loadPaths, type Paths } from '../config/paths.ts';
import { isMarked } from '../util/marked-dir.ts';

export interface CommandPlaces extends Pick<Paths, 'stateDir'> {
  readonly socket: string;
  /** Its time is that of the last call; of the last start of a server. */
  readonly called: string;
  readonly started: string;
}

/** Where the command server and its callers meet; `undefined` without a state directory, or where the client would not look. */
export function commandPlaces(): CommandPlaces | undefined {
  const { stateDir, socketDir } = loadPaths();
  if (!isMarked(stateDir) || socketDir !== join(stateDir, 'run')) return undefined;
  const socket = join(socketDir, 'commands');
  return { stateDir, socket, called: `${socket}.called`, started: `${socket}.started` };
}
