import { accessSync, constants, statSync } from 'node:fs';
import { ensureStateDirs, type Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { GryphusError } from '../errors.ts';
import { holdAttributes } from '../job/hold.ts';
import { type AttemptId, formatAttemptKey, formatJobId, type JobId, parseAttemptKey } from '../job/ids.ts';
import { readNumber, readString } from '../job/values.ts';
import { Attrs } from '../job/attrs.ts';
import { openQueue, type Queue, type RestoredJob } from '../queue/api.ts';
import type { AuditRecord, RecalledAttempt, SiteAudit } from '../site/audit.ts';
import { queuePlace } from './daemon.ts';
import { endDaemons } from './daemon-status.ts';
import { promptOf } from './prompt.ts';
import { type Place, Places, sitesOf, soleAgent } from './recovery-places.ts';
import { type RecoveredJob, recoveredJob } from './recovered-job.ts';
import type { Recovery, RecoveryStep, RecoverRequest } from './recovery-types.ts';
import { makeDirs } from '../util/private-file.ts';
import { withdraw } from './withdraw.ts';
import { ownUser } from '../util/own-user.ts';

/** Held, in HTCondor's codes for a hold by the user. */
const HELD_BY_US = 1;
/** The beginning of the reason while a job is held between its return to the queue and the site's next report. */
const TAKING = 'Recovered; its attempt';

/**
 * Makes this state directory the one that serves an agent whose own was lost, and takes over what the sites hold for it:
 * jobs return under their ids, those that run are followed, and the results of those that have ended come home. Sites
 * refuse the former state directory from then on (jobmanager.sh, `take_hold`). Each step can be repeated, so that an
 * interrupted recovery is simply run again; so is one after which another site answers.
 */
export async function recover(paths: Paths, request: RecoverRequest): Promise<Recovery> {
  ensureStateDirs(paths);
  const settings = await loadSettings(paths);
  const owner = settings.owner ?? ownUser().username;
  const sites = await sitesOf(paths, request);
  // A daemon that runs would go on under the former id.
  if (!request.dryRun) await endDaemons(paths);
  const open = () => openQueue({ ...queuePlace(paths, settings), start: 'if-needed' });
  const first = await open();
  const steps: RecoveryStep[] = [];
  const places = new Places(paths, owner, sites, promptOf(request.ask), (site, error) =>
    steps.push({ site, outcome: 'unreachable', message: error.message }),
  );
  try {
    const agent = request.agent ?? (await soleAgent(first, places));
    await mustBeFree(first, agent);
    const found = await places.holdings(agent);
    const epoch = Math.max(first.holder.epoch, ...found.map(({ past }) => past.epoch)) + 1;
    const work = { owner, request, umask: process.umask(), steps };
    if (request.dryRun) {
      for (const place of found) await takeFrom(place, { ...work, queue: first, agent });
      return { agent, steps };
    }
    if (!(await first.takeOver(agent, epoch)))
      throw new GryphusError('conflict', `Another \`gryphus recover\` has taken over agent ${agent} here.`);
    const queue = await open();
    try {
      await queue.skipClusters(Math.max(0, ...found.map(lastCluster)));
      // Looked at again: from here on nobody else changes what is there.
      for (const place of await places.holdings(agent, queue)) await takeFrom(place, { ...work, queue, agent });
    } finally {
      await queue.close();
    }
    return { agent, steps };
  } finally {
    await places.close();
    await first.close();
  }
}

async function mustBeFree(queue: Queue, agent: string): Promise<void> {
  if (agent === queue.agent || (await queue.mark()).cluster === 0) return;
  throw new GryphusError('conflict', 'This state directory already has jobs of its own; two agents cannot be merged.', {
    suggestions: ['Recover into an empty one: GRYPHUS_HOME=~/recovered-gryphus gryphus recover …'],
  });
}

interface Work {
  readonly queue: Queue;
  readonly agent: string;
  readonly owner: string;
  readonly umask: number;
  readonly request: RecoverRequest;
  readonly steps: RecoveryStep[];
}

async function takeFrom(place: Place, work: Work): Promise<void> {
  const newest = newestOf(place.there, work.agent);
  const known = await knownOf(
    work.queue,
    newest.map(({ attempt }) => attempt),
  );
  const unknown = newest.filter(({ attempt }) => !known.has(formatJobId(attempt)));
  const recalled = await place.site.recall?.(unknown.map(({ record }) => record.key));
  const byKey = new Map(recalled?.map((one) => [one.key, one]));
  for (const found of unknown) work.steps.push(await takeOne(place, work, found, byKey.get(found.record.key)));
}

async function takeOne(
  place: Place,
  work: Work,
  { attempt, record }: Found,
  told: RecalledAttempt | undefined,
): Promise<RecoveryStep> {
  const base = { site: place.record.name, job: formatJobId(attempt), key: record.key, state: record.state };
  if (record.state === 'cancelled' || record.state === 'fenced')
    return { ...base, outcome: 'left', message: 'it was withdrawn, and will not run there' };
  if (told && new Attrs(told.attrs).has('GryphusGlidein')) {
    // The pool that it would join is lost.
    if (!work.request.dryRun) await withdraw(place.site, place.record.name, record.key);
    return {
      ...base,
      outcome: 'left',
      message: `it is a pilot of the lost pool, and ${work.request.dryRun ? 'would be' : 'was'} withdrawn`,
    };
  }
  const job = told && recoveredJob(told, attempt, placeFor(place, work));
  if (job === undefined) return { ...base, outcome: 'left', message: 'its record there is damaged' };
  const dag = readNumber(new Attrs(job.attrs), 'DAGManJobId');
  const where = { directory: job.directory, moved: job.moved, ...(dag === undefined ? {} : { dag }) };
  return record.state === 'prepared'
    ? { ...base, outcome: 'held', message: await putBack(place, work, attempt, job), ...where }
    : { ...base, outcome: 'followed', message: await follow(place, work, attempt, job), ...where };
}

interface Found {
  readonly attempt: AttemptId;
  readonly record: AuditRecord;
}

/** Of several attempts of one job, only the newest can be the job's. */
function newestOf(there: SiteAudit, agent: string): readonly Found[] {
  const newest = new Map<string, Found>();
  for (const record of there.records) {
    const attempt = parseAttemptKey(record.key);
    // Pilots and other helpers of the agent are no jobs of the user.
    if (attempt?.agent !== agent || attempt.cluster === 0) continue;
    const name = formatJobId(attempt);
    if ((newest.get(name)?.attempt.attempt ?? -1) < attempt.attempt) newest.set(name, { attempt, record });
  }
  return [...newest.values()].toSorted(
    (a, b) => a.attempt.cluster - b.attempt.cluster || a.attempt.proc - b.attempt.proc,
  );
}

/** Jobs that the queue or the history has, but for one that an interrupted recovery put back and did not follow yet. */
async function knownOf(queue: Queue, ids: readonly JobId[]): Promise<ReadonlySet<string>> {
  const known = new Set<string>();
  for await (const sighting of queue.look([{ ids }])) {
    for (const job of sighting.jobs) {
      const halfway = job.state === 'held' && readString(job.attrs, 'HoldReason')?.startsWith(TAKING) === true;
      if (!halfway) known.add(formatJobId(job.id));
    }
  }
  return known;
}

function placeFor({ record }: Place, { owner, umask, request }: Work) {
  return {
    owner,
    umask,
    into: request.into,
    isDirectory,
    gridResource: `batch ${record.batch} ${record.name}`,
    isHere: record.target.kind === 'local',
  };
}

function isDirectory(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

async function restore(
  place: Place,
  { queue, request }: Work,
  attempt: AttemptId,
  job: RecoveredJob,
  why: string,
): Promise<void> {
  if (request.dryRun) return;
  if (job.moved) makeDirs(job.directory);
  const restored: RestoredJob = {
    id: { cluster: attempt.cluster, proc: attempt.proc },
    attrs: { ...job.attrs, ...holdAttributes(why, HELD_BY_US) },
    attempt: attempt.attempt,
    manager: place.identity,
    site: place.record.name,
  };
  await queue.restore(restored);
}

/** The site has the job: it is followed from here on. */
async function follow(place: Place, work: Work, attempt: AttemptId, job: RecoveredJob): Promise<string> {
  await restore(
    place,
    work,
    attempt,
    job,
    `${TAKING} at ${place.record.name} is being taken over: run \`gryphus recover\` again, do not release it.`,
  );
  if (work.request.dryRun) return 'would be followed';
  const answer = await work.queue.transition({
    id: { cluster: attempt.cluster, proc: attempt.proc },
    event: 'adopted',
    adopt: attempt.attempt,
    route: { manager: place.identity, site: place.record.name },
    set: { HoldReason: null, HoldReasonCode: null, HoldReasonSubCode: null },
  });
  if (!answer.ok)
    throw new GryphusError('conflict', `Job ${formatJobId(attempt)} cannot be followed: ${answer.message}`);
  return 'is followed';
}

/** It was sent there and never told to run: it never will, so it is put back for the user to release. */
async function putBack(place: Place, work: Work, attempt: AttemptId, job: RecoveredJob): Promise<string> {
  if (work.request.dryRun) return 'would be held: it was never started';
  await withdraw(place.site, place.record.name, formatAttemptKey(attempt));
  await restore(
    place,
    work,
    attempt,
    job,
    'Recovered; it was never started. A release sends it, with its input files as they are now.',
  );
  return 'is held: it was never started';
}

function lastCluster({ there, past }: Place): number {
  return Math.max(past.cluster, ...there.records.map(({ key }) => parseAttemptKey(key)?.cluster ?? 0));
}
