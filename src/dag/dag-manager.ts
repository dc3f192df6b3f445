import { ownBuild } from '../config/build.ts';
import { notedRedisUrl } from '../config/daemon-files.ts';
import { loadPaths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { openEnqueuer } from '../enqueue/enqueue.ts';
import { asError, GryphusError } from '../errors.ts';
import { parseAttemptKey } from '../job/ids.ts';
import { LIFE } from '../job/life.ts';
import { quoted, readString } from '../job/values.ts';
import { endWithState, openQueue, type Queue } from '../queue/api.ts';
import { jobEnvironment } from '../submit/api.ts';
import { JournalPlace } from './journal-place.ts';
import { FileJournal } from './local.ts';
import type { DagRun } from './manager/prepare.ts';
import { runDag } from './manager/run.ts';
import { fileNameOf } from './language/names.ts';
import { patiently } from './queue-reader.ts';
import { QueueWorld } from './queue-world.ts';
import { subdagDescription } from './subdag.ts';
import { type DagOrder, readOrder } from './words.ts';
import { ownUser } from '../util/own-user.ts';
import { followTimeZone } from '../util/time-zone.ts';

const LEASE_MS = 15_000;
/** The manager's job leaves the queue on exit statuses up to this one (its OnExitRemove). */
const LAST_END = 2;
/** An exit status on which it is started again. */
const GOES_ON = 75;

/** Scripts and, with `getenv`, nodes get only the environment that the submit declares, not what the site added. */
function keepOnly(declared: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env)) if (!(name in declared)) delete process.env[name];
}

/** The DAG manager's process: a scheduler universe job in the directory of the DAG. Exits with DAGMan's exit status. */
async function main(): Promise<number> {
  const order = readOrder(process.argv.slice(2));
  const attempt = parseAttemptKey(process.env['GRYPHUS_KEY'] ?? '');
  if (order === undefined || attempt === undefined) {
    throw new GryphusError('usage', 'The DAG manager is a job: use `gryphus dag submit`.');
  }
  const paths = loadPaths();
  endWithState(paths.stateDir, () => process.exit(GOES_ON));
  const settings = await loadSettings(paths);
  const url = settings['redis.url'] ?? notedRedisUrl(paths);
  const place = new JournalPlace(paths, attempt.cluster);
  const queue = await patiently(() =>
    openQueue({ stateDir: paths.stateDir, socketDir: paths.socketDir, url, start: 'never' }),
  );
  try {
    const known = place.ended();
    if (known !== undefined) return await leave(queue, attempt.cluster, known.exitCode);
    const own = (await patiently(() => queue.cluster(attempt.cluster)))?.attrs;
    if (own !== undefined) keepOnly(jobEnvironment(own));
    const ownAttribute = (name: string): string | undefined => own?.get(name);
    const run = { ...order, dagmanId: attempt.cluster, version: ownBuild().version, ownAttribute };
    const batch = await batchOf(queue, attempt.cluster, order, ownAttribute);
    const owner = settings.owner ?? ownUser().username;
    const root = process.cwd();
    const journal = new FileJournal(place.journal);
    const enqueuer = await openEnqueuer(queue, paths, owner);
    const { rules } = enqueuer;
    const world = new QueueWorld({
      enqueuer,
      dagmanId: attempt.cluster,
      batchName: batch.batchName,
      journal,
      nodes: {
        root,
        owner,
        rules,
        subdag: (file, directory, request) => subdagDescription(run, file, directory, request),
      },
      env: process.env,
    });
    // However this process ends: its successor runs the scripts again.
    process.once('exit', () => world.killScripts());
    watch(queue, attempt.cluster, world);
    const end = await runDag({ ...run, ...batch }, world);
    await world.close();
    journal.close();
    if (end.is === 'stopped') return GOES_ON;
    place.end({ exitCode: end.exitCode, ...(end.progress === undefined ? {} : { progress: end.progress }) });
    return await leave(queue, attempt.cluster, end.exitCode);
  } finally {
    await queue.close();
  }
}

/**
 * The name under which `q` groups a DAG and its nodes, and the id of the outermost DAG; what the job lacks is set to
 * HTCondor's default.
 */
async function batchOf(
  queue: Queue,
  cluster: number,
  order: DagOrder,
  own: NonNullable<DagRun['ownAttribute']>,
): Promise<{ readonly batchName: string; readonly batchId: string }> {
  const name = order.batchName ?? readString({ get: own }, 'JobBatchName');
  const id = readString({ get: own }, 'JobBatchId');
  const batchName = name ?? `${fileNameOf(order.files[0] ?? '')}+${cluster}`;
  const batchId = id ?? `${cluster}.0`;
  const missing = {
    ...(name === undefined ? { JobBatchName: quoted(batchName) } : {}),
    ...(id === undefined ? { JobBatchId: quoted(batchId) } : {}),
  };
  if (Object.keys(missing).length > 0) await patiently(() => queue.editCluster(cluster, missing));
  return { batchName, batchId };
}

/** Once its work is done, the job must leave the queue, whatever exit status ABORT-DAG-ON gave it. */
async function leave(queue: Queue, cluster: number, exitCode: number): Promise<number> {
  if (exitCode > LAST_END) {
    await patiently(() => queue.transition({ id: { cluster, proc: 0 }, set: { OnExitRemove: 'true' } }));
  }
  return exitCode;
}

/**
 * How long an ending DAG manager waits for the queue, which at a shutdown was told to end as well, and after that for what it does in the
 * queue. Milliseconds.
 */
const LAST_QUESTION_MS = 3000;
const LAST_MS = 1000;

/** Ensures that a DAG has one manager. When told to end, it asks the queue whether its DAG is removed or only held. */
function watch(queue: Queue, cluster: number, world: QueueWorld): void {
  void patiently(() => queue.acquireLease(`dag:${cluster}`, LEASE_MS, { force: true })).then((lease) => {
    setInterval(() => {
      if (lease === undefined) return;
      queue.renewLease(lease, LEASE_MS).then(
        (mine) => {
          // Stop without another write: the DAG belongs to another process now.
          if (!mine) process.exit(GOES_ON);
        },
        () => undefined,
      );
    }, LEASE_MS / 3).unref();
  });
  const asked = async (): Promise<void> => {
    const signal = AbortSignal.timeout(LAST_QUESTION_MS);
    const jobs = await patiently(() => queue.get([{ cluster, proc: 0 }]), signal).catch(() => undefined);
    const removed = jobs !== undefined && (jobs[0] === undefined || LIFE[jobs[0].state].shows === 'removed');
    world.put(removed ? { is: 'told', event: { is: 'remove' } } : { is: 'stop' });
    if (!removed) setTimeout(() => process.exit(GOES_ON), LAST_MS).unref();
  };
  followTimeZone();
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void asked());
}

main().then(
  (code) => process.exit(code),
  (thrown: unknown) => {
    process.stderr.write(`${asError(thrown).stack}\n`);
    process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
  },
);
