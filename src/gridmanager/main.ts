import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadCredentials, watchConfig } from '../config/credentials.ts';
import { loadPaths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { loadAllSites } from '../config/sites.ts';
import { asError, GryphusError } from '../errors.ts';
import { openLog } from '../log.ts';
import { poolPlaces } from '../pool/places.ts';
import { openPoolSite } from '../pool/pool-site.ts';
import { openQueue } from '../queue/api.ts';
import { CredentialGate } from './credential-gate.ts';
import { deskPath } from './desk-path.ts';
import { LoginDesk } from './login-desk.ts';
import { GridManager } from './manager.ts';
import { openSite } from './open-site.ts';
import { urlAccess } from './url-access.ts';

/** A manager without work stays for so long, in case more comes. */
const LINGER_MS = 20_000;

/** The GridManager's process: its one argument is the identity that it serves. */
async function main(identity: string): Promise<void> {
  const paths = loadPaths();
  const settings = await loadSettings(paths);
  const log = openLog(
    join(paths.logDir, `gridmanager-${identity}.log`),
    settings['log.level'],
    settings['log.max_size'],
  );
  const queue = await openQueue({
    stateDir: paths.stateDir,
    socketDir: paths.socketDir,
    url: settings['redis.url'],
    start: 'await',
    patienceMs: 30_000,
  });
  mkdirSync(paths.spoolDir, { recursive: true, mode: 0o700 });
  const desk = new LoginDesk(deskPath(paths, identity));
  const manager = new GridManager({
    identity,
    queue,
    spoolDir: paths.spoolDir,
    loadSites: () => loadAllSites(paths),
    openSite: async (record) =>
      record.batch === 'pool'
        ? openPoolSite({ name: record.name, socket: poolPlaces(paths).clientSocket, client: identity })
        : openSite(record, { agent: queue.agent, prompt: desk.promptFor(record.name), paths }),
    gate: new CredentialGate({ load: () => loadCredentials(paths), limits: watchConfig(settings), now: Date.now }),
    urls: urlAccess(paths, settings),
    lingerMs: LINGER_MS,
    log: (message, facts) => log.info(facts ?? {}, message),
  });
  process.once('SIGTERM', () => manager.end());
  process.once('SIGINT', () => manager.end());
  await desk.open(manager);
  log.info({ identity }, 'started');
  try {
    await manager.run();
    log.info('ended: no work left');
  } catch (thrown) {
    const error = asError(thrown);
    log.error({ err: error }, 'ended');
    throw error;
  } finally {
    await desk.close();
    await queue.close();
  }
}

const identity = process.argv[2];
if (identity === undefined) {
  process.stderr.write('The GridManager is started by the Scheduler.\n');
  process.exit(2);
}
main(identity).then(
  () => process.exit(0),
  (thrown: unknown) => {
    process.stderr.write(`${asError(thrown).message}\n`);
    process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
  },
);
