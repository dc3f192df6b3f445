import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { loadPaths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import { openLog } from '../log.ts';
import { parseAddress } from '../config/address.ts';
import { openPortWay } from '../reverse-connection/port-way.ts';
import { relay } from '../reverse-connection/relay.ts';
import { poolPlaces } from './host/places.ts';
import type { PortNews } from './port-news.ts';
import { Tokens } from './wire/tokens.ts';

/** How often rejected connections are logged, in milliseconds. */
const TELL_MS = 60_000;
/** The assumed limit of open files if it cannot be read: every system allows this many. */
const DESCRIPTORS = 256;

/**
 * The process that has the agent's port for workers; its only argument is the address. It is a separate process because
 * anyone can connect: strangers can exhaust only its resources.
 */
async function main(listen: string): Promise<PortNews> {
  const paths = loadPaths();
  const settings = await loadSettings(paths);
  const log = openLog(join(paths.logDir, 'pool-port.log'), settings['log.level'], settings['log.max_size']);
  const places = poolPlaces(paths);
  const tokens = new Tokens(places.dir);
  let away = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;
  const { port } = await openPortWay({
    ...parseAddress(listen, 'glidein.listen'),
    welcome: ({ link }) => relay(link, connect(places.workerSocket)),
    keyOf: (id) => {
      const token = tokens.find(id, Date.now() / 1000);
      return token && Buffer.from(token.secret, 'hex');
    },
    descriptors: mostDescriptors(),
    onTurnedAway: (message) => {
      away += 1;
      if (performance.now() - reportedAt < TELL_MS) return;
      log.info({ message, times: away }, 'refused at the port');
      reportedAt = performance.now();
      away = 0;
    },
  });
  log.info({ listen, port }, 'listening for workers');
  return { port };
}

/** The limit of open files; Node has already raised it as far as possible. */
function mostDescriptors(): number {
  try {
    const found = /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
    return found === 'unlimited' ? 1_000_000 : Number(found ?? DESCRIPTORS);
  } catch {
    return DESCRIPTORS;
  }
}

// It ends when the process that started it does.
process.once('disconnect', () => process.exit(0));
main(process.argv[2] ?? '').then(
  (news) => process.send?.(news),
  (thrown: unknown) => {
    process.send?.({ error: asError(thrown).message } satisfies PortNews, () =>
      process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70),
    );
  },
);
