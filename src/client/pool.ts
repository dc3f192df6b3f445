import type { Paths } from '../config/paths.ts';
import { GryphusError } from '../errors.ts';
import { Attrs, type AttrTexts } from '../job/attrs.ts';
import { formatJobId, type JobId } from '../job/ids.ts';
import { compileConstraint } from '../job/values.ts';
import type { PoolOwner, PriorityChange, Reservation, Steer, WaitInPool } from '../pool/wire/client-wire.ts';
import { type CentralManagerClient, askCentralManager } from '../pool/central-manager-client.ts';
import { failureOf, poolPlaces } from '../pool/host/places.ts';
import type { Queue } from '../queue/api.ts';
import { POOL_WANTED, WHOLE } from '../queue/tables.ts';
import { socketAnswers } from '../util/socket-answers.ts';
import type { ActionResult, AdText } from './types.ts';

const CENTRAL_MANAGER_MS = 60_000;

/** Makes sure that the central manager runs, and waits until it is ready. */
export async function openCentralManager(queue: Queue, paths: Paths): Promise<string> {
  const { clientSocket } = poolPlaces(paths);
  if (await socketAnswers(clientSocket)) return clientSocket;
  await POOL_WANTED.set(queue.kv, WHOLE, Date.now());
  await queue.notice({ about: 'site-up', site: 'pool', message: 'The pool is wanted.' });
  for (const end = Date.now() + CENTRAL_MANAGER_MS; Date.now() < end; ) {
    if (await socketAnswers(clientSocket)) return clientSocket;
    await new Promise((resume) => setTimeout(resume, 50));
  }
  const why = failureOf(clientSocket);
  throw new GryphusError('site-unreachable', `The pool's central manager did not start${why ? `: ${why}` : '.'}`, {
    suggestions: [`See ${paths.logDir}/scheduler.log and ${paths.logDir}/pool.log.`],
  });
}

/** The pool's slots as ClassAds; empty if no central manager runs. */
export async function poolSlots(paths: Paths, constraint?: string): Promise<readonly AdText[]> {
  const wanted = constraint === undefined ? () => true : compileConstraint(constraint, 'constraint');
  const ads = await asking(
    paths,
    async (centralManager) => (await centralManager.ask({ t: 'slots' }, 'slots')).ads,
    [] as AttrTexts[],
  );
  return ads.map((ad) => plain(ad)).filter((ad) => wanted(new Attrs(ad)));
}

/** Who uses the pool or waits for it, the next to be served first; empty if no central manager runs. */
export function poolOwners(paths: Paths): Promise<readonly PoolOwner[]> {
  return asking<readonly PoolOwner[]>(
    paths,
    async (centralManager) => (await centralManager.ask({ t: 'owners' }, 'owners')).owners,
    [],
  );
}

/** Changes what the Negotiator knows of an owner, or of all. */
export async function setPoolPriority(queue: Queue, paths: Paths, change: PriorityChange): Promise<void> {
  const centralManager = askCentralManager(await openCentralManager(queue, paths), 'ask');
  try {
    const { known } = await centralManager.ask({ t: 'set-priority', ...change }, 'priority-set');
    if (known) return;
    throw new GryphusError('not-found', `The pool knows no owner '${change.owner ?? ''}'.`, {
      suggestions: ['gryphus userprio shows the owners that it knows.'],
    });
  } finally {
    await centralManager.close();
  }
}

/** The reservations of machines for parallel jobs, after a change, if any; empty if no central manager runs. */
export async function poolReservations(
  queue: Queue,
  paths: Paths,
  change?: { readonly make?: Reservation; readonly drop?: string },
): Promise<readonly Reservation[]> {
  const ask = async (centralManager: CentralManagerClient) =>
    (await centralManager.ask({ t: 'reserve', ...change }, 'reserved')).reservations;
  if (!change) return asking<readonly Reservation[]>(paths, ask, []);
  const centralManager = askCentralManager(await openCentralManager(queue, paths), 'ask');
  try {
    return await ask(centralManager);
  } finally {
    await centralManager.close();
  }
}

/** Why a job waits in the pool; no lines if no central manager runs, or if nothing holds the job up. */
export function whyInPool(paths: Paths, agent: string, id: JobId): Promise<WaitInPool> {
  const job = `${agent}.${formatJobId(id)}`;
  return asking<WaitInPool>(paths, (centralManager) => centralManager.ask({ t: 'why', job }, 'why'), { lines: [] });
}

/** Vacates, suspends, continues or checkpoints jobs that run in the pool. */
export async function steerInPool(
  paths: Paths,
  agent: string,
  how: Steer,
  ids: readonly JobId[],
): Promise<readonly ActionResult[]> {
  const jobs = ids.map((id) => `${agent}.${formatJobId(id)}`);
  const steered = new Set(
    await asking(
      paths,
      async (centralManager) => (await centralManager.ask({ t: 'steer', jobs, how }, 'steered')).jobs,
      [] as string[],
    ),
  );
  const done = { vacate: 'vacated', suspend: 'suspended', continue: 'continued', checkpoint: 'asked to checkpoint' }[
    how
  ];
  const not = how === 'checkpoint' ? 'not running in the pool with want_checkpoint' : 'not running in the pool';
  return ids.map((id) =>
    steered.has(`${agent}.${formatJobId(id)}`)
      ? { id, result: 'done', message: done }
      : { id, result: 'bad-state', message: not },
  );
}

async function asking<T>(
  paths: Paths,
  work: (centralManager: CentralManagerClient) => Promise<T>,
  without: T,
): Promise<T> {
  const socket = poolPlaces(paths).clientSocket;
  const centralManager = askCentralManager(socket, 'ask');
  try {
    return await work(centralManager);
  } catch (thrown) {
    if (thrown instanceof GryphusError && thrown.code === 'site-unreachable') return without;
    throw thrown;
  } finally {
    await centralManager.close();
  }
}

function plain(ad: AttrTexts): AdText {
  return Object.fromEntries(Object.entries(ad).flatMap(([name, text]) => (text === null ? [] : [[name, text]])));
}
