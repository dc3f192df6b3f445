import { userInfo } from 'node:os';
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
import { fileNameOf } from './names.ts';
import { patiently } from './queue-reader.ts';
import { QueueWorld } from './queue-world.ts';
import { subdagDescription } from './subdag.ts';
import { type DagOrder, readOrder } from './words.ts';

const LEASE_MS = 15_000;
/** Exit statuses up to this one take the manager's job out of the queue (its OnExitRemove). */
const LAST_END = 2;
/** An exit status that brings it back. */
const GOES_ON = 75;

/** What its submit says is the environment of its scripts and, with `getenv`, its nodes; the rest is what its site gave it. */
function keepOnly(declared: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env)) if (!(name in declared)) delete process.env[name];
}

/** The DAG manager's process: a job of the scheduler universe, in the directory of the DAG. Its exit status is DAGMan's. */
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
    const owner = settings.owner ?? userInfo().username;
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
    watch(queue, attempt.cluster, world);
    const end = await runDag({ ...run, ...batch }, world);
    await world.close();
    journal.close();
    if (end.is === 'stopped') return GOES_ON;
    place.end({ exitCode: end.exitCode, order, ...(end.progress === undefined ? {} : { progress: end.progress }) });
    return await leave(queue, attempt.cluster, end.exitCode);
  } finally {
    await queue.close();
  }
}

/**
 * Under which name `q` shows a DAG and its nodes together, and the id of the outermost DAG; what its job does not carry
 * yet is HTCondor's default.
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

/** With its work done the job is to leave the queue, whatever ABORT-DAG-ON made of the exit status. */
async function leave(queue: Queue, cluster: number, exitCode: number): Promise<number> {
  if (exitCode > LAST_END) {
    await patiently(() => queue.transition({ id: { cluster, proc: 0 }, set: { OnExitRemove: 'true' } }));
  }
  return exitCode;
}

/** One manager for a DAG; asked to end, it looks in the queue whether its DAG is removed, or only held. */
function watch(queue: Queue, cluster: number, world: QueueWorld): void {
  void patiently(() => queue.acquireLease(`dag:${cluster}`, LEASE_MS, { force: true })).then((lease) => {
    setInterval(() => {
      if (lease === undefined) return;
      queue.renewLease(lease, LEASE_MS).then(
        (mine) => {
          // Not another word: the DAG is another process's now.
          if (!mine) process.exit(GOES_ON);
        },
        () => undefined,
      );
    }, LEASE_MS / 3).unref();
  });
  const asked = async (): Promise<void> => {
    const [own] = await patiently(() => queue.get([{ cluster, proc: 0 }]));
    const removed = own === undefined || LIFE[own.state].shows === 'removed';
    world.put(removed ? { is: 'told', event: { is: 'remove' } } : { is: 'stop' });
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void asked());
}

main().then(
  (code) => process.exit(code),
  (thrown: unknown) => {
    process.stderr.write(`${asError(thrown).stack}\n`);
    process.exit(thrown instanceof GryphusError ? thrown.exitCode : 70);
  },
);
