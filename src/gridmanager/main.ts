import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { loadCredentials, watchConfig } from '../config/credentials.ts';
import { followSettings, SiteBook } from '../config/follow.ts';
import { loadPaths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { asError } from '../errors.ts';
import { endOnSignal, runDaemon } from '../util/run-daemon.ts';
import { openLog } from '../log.ts';
import { poolPlaces } from '../pool/host/places.ts';
import { Tokens } from '../pool/wire/tokens.ts';
import { endWithState, openQueue } from '../queue/api.ts';
import { parseAddress } from '../config/address.ts';
import { oneLine } from '../util/plain-text.ts';
import { keyAt } from '../util/private-file.ts';
import { spreadNet } from '../util/process-net.ts';
import { Secrets } from './chirp/secrets.ts';
import { CredentialGate, type GateOptions } from './credential-gate.ts';
import { directReadsPath, loginSocketPath } from '../config/manager-sockets.ts';
import { ProxyPrograms } from './io-proxy-programs.ts';
import { DirectReads } from './remote-io/direct-reads.ts';
import { LoginSocket } from './login-socket.ts';
import { GridManager } from './manager.ts';
import { OpenConnections } from './open-connections.ts';
import { tellSending, type TransferWay } from '../queue/transfers.ts';
import type { Sending } from '../site/contract.ts';
import { guardedMarks } from './older-copy.ts';
import { openSite, siteCares } from '../open-site/open-site.ts';
import { SiteTokens } from './site-tokens.ts';
import { keepWays, TOKENS_MS } from './site-workers.ts';
import { urlAccess } from './url-access.ts';

/** How long a manager without work stays, in case more comes; milliseconds. */
const LINGER_MS = 20_000;
/** How often it looks at its surroundings while it hears nothing, seconds. There may be many such processes. */
const LOOK_SECONDS = 5;

/** The GridManager process. Its one argument is the identity that it serves. */
async function main(identity: string): Promise<void> {
  // The Scheduler set it for this process, not for what this process starts.
  delete process.env['UV_THREADPOOL_SIZE'];
  const paths = loadPaths();
  const { settings, follow, close: closeSettings } = await followSettings(paths);
  const log = openLog(
    join(paths.logDir, `gridmanager-${identity}.log`),
    settings['log.level'],
    settings['log.max_size'],
  );
  follow({
    changed: (now) => {
      log.level = now['log.level'];
    },
    wrong: (message) => log.warn(message),
    every: LOOK_SECONDS,
  });
  const sites = new SiteBook(paths, (message) => log.warn(message));
  const told = new AbortController();
  const queue = await openQueue({
    stateDir: paths.stateDir,
    socketDir: paths.socketDir,
    url: settings['redis.url'],
    start: 'await',
    patienceMs: 30_000,
    leaving: told.signal,
  });
  const loginSocket = new LoginSocket(loginSocketPath(paths, identity));
  const address = settings['glidein.address'] ?? settings['glidein.listen'];
  const directReads = new DirectReads(directReadsPath(paths, identity));
  const workers = {
    paths,
    tokens: new SiteTokens(new Tokens(poolPlaces(paths).dir), TOKENS_MS),
    takeDirect: (raw: Duplex) => directReads.take(raw),
    queue,
    port: address === undefined ? undefined : parseAddress(address, 'glidein.address'),
    log: (message: string, facts?: object) => log.info(facts ?? {}, message),
  };
  const connections = new OpenConnections({ agent: queue.agent, identity, paths });
  const mark = { now: guardedMarks(queue), key: keyAt(join(paths.stateDir, 'mark-key')) };
  const onFault = (message: string, error: Error): void => {
    log.error({ err: error }, message);
    void queue.notice({ about: 'fault', manager: identity, message: oneLine(message) }).catch(() => undefined);
  };
  /** Publishes the progress of transfers, and wakes the work loop that waits for one when it ends. */
  const following = (way: TransferWay, site: string) => {
    let before = 0;
    return (all: readonly Sending[]): void => {
      void tellSending(queue, way, `${identity}/${site}`, all);
      if (all.length < before) manager.wake(site, way === 'to' ? 'submit' : 'results');
      before = all.length;
    };
  };
  const manager: GridManager = new GridManager({
    identity,
    queue,
    spoolDir: paths.spoolDir,
    loadSites: () => sites.allSites(),
    loadSite: (name) => sites.site(name),
    problem: (name) => sites.problem(name),
    openSite: async (record) =>
      record.batch === 'pool'
        ? (await import('../pool/pool-site.ts')).openPoolSite({
            name: record.name,
            socket: poolPlaces(paths).clientSocket,
            client: identity,
            proxies: poolPlaces(paths).proxies,
          })
        : openSite(record, {
            agent: queue.agent,
            identity,
            prompt: loginSocket.promptFor(record.name),
            paths,
            manager: identity,
            cares: siteCares(settings),
            mark,
            holder: queue.holder,
            onSending: following('to', record.name),
            onComing: following('from', record.name),
            onOpen: (site, transport) => {
              const ends = [keepWays(workers, record, site, transport), connections.keep(record, transport)];
              return () => ends.forEach((end) => end());
            },
          }),
    retry: () => ({ min: settings['gridmanager.retry_min'] * 1000, max: settings['gridmanager.retry_max'] * 1000 }),
    gate: new CredentialGate({ load: () => loadCredentials(paths), limits: gateLimits(settings), now: Date.now }),
    secrets: new Secrets([paths.configDir, paths.stateDir, paths.sitesDir]),
    remoteIo: () => settings['pool.remote_io'],
    directReads,
    ioProxy: new ProxyPrograms(() => ({
      repository: join(paths.stateDir, 'repository'),
      from: settings['glidein.node'],
      log: (message, facts) => log.info(facts ?? {}, message),
    })),
    urls: urlAccess(paths, settings),
    streamEveryMs: () => settings['urls.stream_interval'] * 1000,
    hungAfterMs: () => settings['gridmanager.hung_after'] * 1000,
    lingerMs: LINGER_MS,
    log: (message, facts) => log.info(facts ?? {}, message),
    onFault,
  });
  endOnSignal(
    () => {
      told.abort();
      manager.end();
    },
    (open) => log.warn({ open }, 'ends without waiting any longer'),
  );
  spreadNet({ onFault, end: (error) => manager.end(error) });
  endWithState(paths.stateDir, () => manager.end());
  await loginSocket.open({
    site: (name) => manager.site(name),
    encourage: (name) => manager.encourage(name),
    check: (name, signal) => connections.check(name, signal),
  });
  log.info({ identity }, 'started');
  try {
    await manager.run();
    log.info('exits: no work left');
  } catch (thrown) {
    const error = asError(thrown);
    log.error({ err: error }, 'ended');
    throw error;
  } finally {
    closeSettings();
    loginSocket.close();
    await directReads.close();
    await queue.close();
  }
}

/** The current settings, read at each access. */
function gateLimits(settings: Settings): GateOptions['limits'] {
  return {
    get holdBefore() {
      return watchConfig(settings).holdBefore;
    },
    get skew() {
      return watchConfig(settings).skew;
    },
  };
}

const identity = process.argv[2];
if (identity === undefined) {
  process.stderr.write('The GridManager is started by the Scheduler.\n');
  process.exit(2);
}
runDaemon(main(identity));
