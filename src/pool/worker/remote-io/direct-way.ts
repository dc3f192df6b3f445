import type { Duplex } from 'node:stream';
import { dialDirect, type DirectWay } from '../../../reverse-connection/direct.ts';
import { type Way, waysNow } from '../../../reverse-connection/home.ts';
import type { HomeAnswer } from '../../../site/chirp.ts';
import { directReads } from '../../../site/remote-io.ts';
import type { WorkerConfig } from '../../wire/worker-config.ts';

/** Connects by the answer to 'remote_direct'. Rejects if that is impossible. */
export type DirectDialling = (answer: HomeAnswer) => Promise<Duplex>;

/** On the agent's machine by its socket, elsewhere by the worker's ways home, the first that works. */
export function directDialling(
  config: Pick<WorkerConfig, 'socket' | 'token' | 'secret' | 'ways' | 'waysFile'>,
): DirectDialling {
  return async ({ result, bytes }) => {
    if (result !== 0 || !bytes) throw new Error('home has no direct way');
    const { socket, ...key } = directReads.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    if (config.socket !== undefined) return dialDirect({ kind: 'socket', path: socket }, key);
    const { token, secret, ways = [], waysFile } = config;
    const home = { worker: token, key: secret, ways: [...ways], ...(waysFile === undefined ? {} : { waysFile }) };
    let last: unknown;
    for (const way of waysNow(home).filter(isDirectWay)) {
      try {
        return await dialDirect(way, key);
      } catch (thrown) {
        last = thrown;
      }
    }
    throw last ?? new Error('there is no direct way');
  };
}

/** By a mailbox, bytes are not faster; the agent's own port leads to the central manager only. */
function isDirectWay(way: Way): way is DirectWay {
  return way.kind === 'socket' || (way.kind === 'port' && way.own !== true);
}
