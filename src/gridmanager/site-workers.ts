import type { Duplex } from 'node:stream';
import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { asError } from '../errors.ts';
import { eachSecond } from '../util/each-second.ts';
import { poolPlaces } from '../pool/host/places.ts';
import type { SiteTokens } from './site-tokens.ts';
import type { Queue } from '../queue/api.ts';
import { GLIDEIN_NODE, SITE_WAYS } from '../queue/tables.ts';
import type { Site } from '../site/contract.ts';
import type { Transport } from '../transport/contract.ts';
import type { SiteWays } from '../reverse-connection/site-ways.ts';

export interface SiteWorkersOptions {
  readonly paths: Pick<Paths, 'stateDir' | 'socketDir'>;
  /** Shared by the sites of a GridManager. */
  readonly tokens: SiteTokens;
  readonly queue: Pick<Queue, 'kv'>;
  /** The agent's own port, as sites can reach it. */
  readonly port: { readonly host: string; readonly port: number } | undefined;
  /** Takes a connection that is not for the central manager; false if it is. */
  readonly takeDirect: (raw: Duplex) => Promise<boolean>;
  readonly log: (message: string, facts?: object) => void;
}

/** How often a site with tokens of workers looks after its connections, and any site checks for tokens; seconds. */
const LOOK_SECONDS = 1;
const CHECK_SECONDS = 5;
/** A look at the tokens is good for so long, milliseconds. */
export const TOKENS_MS = 500;
/** Errors are logged at most once per this time, milliseconds. */
const TELL_MS = 60_000;

/**
 * Keeps the reverse connections of a site open while there are tokens of workers there. Returns the function that stops
 * it.
 */
export function keepWays(
  { paths, tokens, queue, port, takeDirect, log }: SiteWorkersOptions,
  record: SiteRecord,
  site: Pick<Site, 'describe'>,
  transport: Transport,
): () => void {
  const places = poolPlaces(paths);
  let node: string | undefined;
  let ways: SiteWays | undefined;
  let reportedAt = 0;
  let busy = false;
  let closed = false;
  let watched = 0;
  let end = (): void => undefined;

  const look = async (): Promise<void> => {
    const workers = tokens.at(record.name);
    if (workers.size === 0 && ways === undefined) return;
    node ??= await GLIDEIN_NODE.get(queue.kv, record.name);
    const reverse = await import('../reverse-connection/site-ways.ts');
    ways ??= new reverse.SiteWays({
      transport,
      home: async () => (await site.describe()).home,
      node: () => node,
      port,
      centralManager: places.homeSocket,
      takeDirect,
      onView: (view) => {
        const { because, came } = view;
        const row = { because, ...(came && { came }), at: Date.now() };
        void SITE_WAYS.set(queue.kv, record.name, row).catch(() => undefined);
      },
    });
    await ways.keep(workers);
    if (workers.size === 0) ways = undefined;
  };
  const tick = (): void => {
    if (busy) return;
    busy = true;
    look()
      .catch((thrown: unknown) => {
        if (Date.now() - reportedAt < TELL_MS) return;
        reportedAt = Date.now();
        log('a reverse connection is not open', { site: record.name, error: asError(thrown).message });
      })
      .finally(() => {
        busy = false;
        if (!closed) watch(ways === undefined ? CHECK_SECONDS : LOOK_SECONDS);
      });
  };
  const watch = (every: number): void => {
    if (every === watched) return;
    watched = every;
    end();
    end = eachSecond(tick, { every, withNews: true });
  };
  // A site may be opened for the workers that it is to get.
  watch(LOOK_SECONDS);
  return () => {
    closed = true;
    end();
    ways?.close();
  };
}
