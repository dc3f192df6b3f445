import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPaths } from '../../config/paths.ts';
import { followSettings } from '../../config/follow.ts';
import { asError, GryphusError } from '../../errors.ts';
import { openLog } from '../../log.ts';
import { endWithState } from '../../queue/api.ts';
import { goneCheck } from '../../util/marked-dir.ts';
import { spreadNet } from '../../util/process-net.ts';
import { endOnSignal, outliveReader, runDaemon } from '../../util/run-daemon.ts';
import { CentralManagerHost } from './central-manager-host.ts';
import { takeOver } from '../host/take-over.ts';
import { LocalWorker } from './local-worker.ts';
import { sharingRules } from './sharing-rules.ts';
import { failureFile, poolPlaces } from '../host/places.ts';
import { Tokens } from '../wire/tokens.ts';

/**
 * The central manager's process; its only argument is the agent's id. It writes `ready` to standard output when it
 * listens.
 */
async function main(agent: string): Promise<void> {
  const paths = loadPaths();
  const gone = goneCheck(paths.stateDir);
  const { settings, follow, close: closeSettings } = await followSettings(paths);
  const log = openLog(join(paths.logDir, 'pool.log'), settings['log.level'], settings['log.max_size']);
  const say = (message: string, facts?: object) => log.info(facts ?? {}, message);
  const places = poolPlaces(paths);
  if (!existsSync(places.dir)) mkdirSync(places.dir, { mode: 0o700 });
  await takeOver(places.pid, 'central manager');
  const tokens = new Tokens(places.dir);
  const ended = new Promise<Error | undefined>((resolve) => {
    endOnSignal(
      () => resolve(undefined),
      (open) => log.warn({ open }, 'ends without waiting any longer'),
    );
    spreadNet({ onFault: (message, error) => log.error({ err: error }, message), end: resolve });
    endWithState(paths.stateDir, () => resolve(undefined));
    space = new CentralManagerHost({
      places,
      tokens,
      agent,
      log: say,
      onBroken: (error) => resolve(unwritable(error)),
    });
  });
  await space?.listen(places);
  const local = new LocalWorker({
    places,
    settings,
    tokens,
    logFile: join(paths.logDir, 'pool-worker.log'),
    log: say,
    gone,
    heardAt: () => space?.workers.localHeardAt,
    onTrouble: (message) => {
      if (space) space.centralManager.localTrouble = message;
    },
  });
  const apply = () => {
    const wanted = settings['pool.local_worker'];
    if (space) {
      space.workers.localWanted = wanted;
      space.centralManager.rules = sharingRules(settings);
    }
    if (wanted) local.open();
    else local.leave();
  };
  apply();
  follow({
    changed: () => {
      log.level = settings['log.level'];
      log.info('config.toml has changed');
      apply();
    },
    wrong: (message) => log.warn(message),
  });
  rmSync(failureFile(places.clientSocket), { force: true });
  process.stdout.write('ready\n');
  const broken = await ended;
  const idle = space?.centralManager.busy === 0;
  closeSettings();
  space?.close();
  await local.close(idle);
  if (broken) throw broken;
  say('ended');
}

function unwritable({ message }: Error): GryphusError {
  return new GryphusError('disk-full', `The pool's journal cannot be written: ${message}`);
}

let space: CentralManagerHost | undefined;
const agent = process.argv[2];
if (agent === undefined) {
  process.stderr.write('The central manager is started by the Scheduler.\n');
  process.exit(2);
}
outliveReader();
runDaemon(main(agent), (thrown) => {
  const remedies = thrown instanceof GryphusError ? thrown.suggestions : [];
  const why = [asError(thrown).message, ...remedies].join(' ');
  try {
    writeFileSync(failureFile(poolPlaces(loadPaths()).clientSocket), why, { mode: 0o600 });
  } catch {
    // Then only the Scheduler's log says it.
  }
  return why;
});
