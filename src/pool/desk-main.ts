import { join } from 'node:path';
import { ensureStateDirs, loadPaths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import { openLog } from '../log.ts';
import { DeskRoom, takeOver } from './desk-room.ts';
import { LocalWorker } from './local-worker.ts';
import { poolPlaces } from './places.ts';
import { Tokens } from './tokens.ts';

/** The desk's process: its one argument is the agent's id. It says `ready` on standard output when it listens. */
async function main(agent: string): Promise<void> {
  const paths = loadPaths();
  ensureStateDirs(paths);
  const settings = await loadSettings(paths);
  const log = openLog(join(paths.logDir, 'pool.log'), settings['log.level'], settings['log.max_size']);
  const say = (words: string, facts?: object) => log.info(facts ?? {}, words);
  const places = poolPlaces(paths);
  await takeOver(places);
  const tokens = new Tokens(places.dir);
  const ended = new Promise<Error | undefined>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(undefined));
    room = new DeskRoom({ places, tokens, agent, log: say, onBroken: resolve });
  });
  await room?.listen(places);
  const local = new LocalWorker({
    places,
    settings,
    tokens,
    logFile: join(paths.logDir, 'pool-worker.log'),
    log: say,
    heardAt: () => room?.workers.localHeardAt,
    onTrouble: (words) => {
      if (room) room.desk.localTrouble = words;
    },
  });
  if (settings['pool.local_worker']) local.open();
  process.stdout.write('ready\n');
  const broken = await ended;
  const idle = room?.desk.busy === 0;
  room?.close();
  await local.close(idle);
  if (broken) throw new GryphusError('disk-full', `The pool's journal cannot be written: ${broken.message}`);
  say('ended');
}

let room: DeskRoom | undefined;
const agent = process.argv[2];
if (agent === undefined) {
  process.stderr.write('The desk is started by the Scheduler.\n');
  process.exit(2);
}
process.stdout.on('error', () => undefined);
process.stderr.on('error', () => undefined);
main(agent).then(
  () => process.exit(0),
  (thrown: unknown) => {
    process.stderr.write(`${asError(thrown).message}\n`);
    process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
  },
);
