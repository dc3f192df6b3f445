import { remedyOf } from '../backends/remedies.ts';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { POOL_SITE, type SiteRecord } from '../config/sites.ts';
import { formatJobId } from '../job/ids.ts';
import { isEnd, JOB_STATUS, LIFE, type State } from '../job/life.ts';
import { togetherWith } from '../job/parallel-node.ts';
import { sendingOf } from '../queue/transfers.ts';
import { userLogPath } from '../job/user-log-path.ts';
import { adOf, readBoolean, readNumber, readString } from '../job/values.ts';
import type { WaitInPool } from '../pool/wire/client-wire.ts';
import type { JobRecord, Queue } from '../queue/api.ts';
import { owedLogs } from '../queue/owed-logs.ts';
import { siteBackoffs } from '../broker/site-backoff.ts';
import type { BackoffView, ConnectionView } from '../queue/tables.ts';
import { clockText } from '../util/plain-text.ts';
import { connectionOf } from './site-status.ts';
import type { Why } from './types.ts';

/** What the answer is drawn from. */
export interface House {
  readonly queue: Queue;
  readonly sites: ReadonlyMap<string, SiteRecord>;
  readonly paths: Paths;
  readonly settings: Settings;
}

/** One answer to "why is it not running?": our hold, the connection, the site's reason, the jobs ahead of it. */
export async function whyOf({ queue, sites, paths, settings }: House, job: JobRecord): Promise<Why> {
  const connection = job.site === '' ? undefined : await connectionOf(queue, job.manager, job.site);
  const details: string[] = [];
  const suggestions: string[] = [];
  const choice = await choiceOf(queue, job, sites);
  const summary = choice.summary ?? summaryOf(job, connection, sites.get(job.site));
  const message = readString(job.attrs, 'GridJobStatus');
  const inPool = job.site === POOL_SITE.name;
  if (message !== undefined && !inPool && LIFE[job.state].shows !== 'held') {
    details.push(`Site ${job.site} says: ${message}.`);
    const remedy = LIFE[job.state].does === 'watch' ? remedyOf(message) : undefined;
    if (remedy !== undefined) suggestions.push(`${remedy}; then submit it again.`);
  }
  const urlWait = urlAwaited(job, inPool ? message : undefined);
  if (urlWait !== undefined) details.push(urlWait);
  const id = readString(job.attrs, 'GridJobId');
  if (id !== undefined && !inPool) details.push(`Its id there is ${id}.`);
  if (connection && connection.connection !== 'up' && connection.message !== '') {
    details.push(`Connection to ${job.site}: ${connection.message}`);
    if (connection.connection === 'needs-login') suggestions.push(`gryphus site login ${job.site}`);
    else if (sites.has(job.site) && !inPool) suggestions.push(`gryphus site test ${job.site}`);
  }
  if (job.site !== '' && !inPool && !sites.has(job.site) && !isEnd(job.state)) {
    details.push(`There is no site ${job.site} in the configuration: nothing is done for the job until there is one.`);
    suggestions.push(`gryphus site add ${job.site} URL`, `gryphus move ${formatJobId(job.id)} SITE`);
  }
  if (connection?.trouble !== undefined) details.push(`${connection.trouble}. It is retried automatically.`);
  if (
    job.state === 'removing' &&
    (!sites.has(job.site) || (connection !== undefined && connection.connection !== 'up'))
  )
    suggestions.push(`gryphus rm --force ${formatJobId(job.id)}   # forget it, even if ${job.site} still runs it`);
  const wanted = readString(job.attrs, 'GryphusMoveTo');
  if (wanted !== undefined)
    details.push(`It goes to ${wanted} when ${job.site} has confirmed that it will not run there.`);
  details.push(...(await underWay(queue, job)));
  const backoff = (await siteBackoffs(queue.kv)).get(job.site);
  const waits = ['idle', 'preparing', 'prepared'].includes(job.state);
  if (waits && backoff?.learned)
    details.push(
      `Site ${job.site} accepted ${backoff.learned.cap} of our jobs and no more: ${backoff.learned.message}`,
    );
  if (waits && backoff?.outOfUse) details.push(restsText(job.site, backoff.outOfUse, Math.floor(Date.now() / 1000)));
  details.push(...choice.details);
  if (inPool && (job.state === 'committed' || job.state === 'suspended')) {
    const { whyInPool } = await import('./pool.ts');
    const { NO_WORKERS } = await import('../pool/wire/client-wire.ts');
    const { lines, wants, byUser } = await whyInPool(paths, queue.agent, { ...job.id }).catch(
      (): WaitInPool => ({ lines: [] }),
    );
    if (byUser) suggestions.push(`gryphus continue ${formatJobId(job.id)}`);
    const nobody = lines.includes(NO_WORKERS);
    const coming = nobody && settings['pool.local_worker'];
    details.push(...(await missingOf(queue, job)), ...lines, ...(coming ? ["This machine's worker is starting."] : []));
    details.push(...(await withoutRuntimes(queue, job, sites)));
    if (wants && !coming) suggestions.push(...getWorkers(wants, nobody));
  }
  if (job.state === 'idle' && job.site !== '') details.push(...(await ahead(queue, job, sites.get(job.site))));
  details.push(...(await logOwed(queue, job)));
  if (LIFE[job.state].shows === 'held') {
    const named = attributesNamed(readString(job.attrs, 'HoldReason') ?? '');
    if (named.length > 0) suggestions.push(`gryphus edit ${formatJobId(job.id)} NAME=VALUE   # ${named.join(', ')}`);
    suggestions.push(`gryphus release ${formatJobId(job.id)}`);
  }
  return { id: job.id, state: job.state, summary, details, suggestions };
}

/** The URL whose server is away; at other sites, an input's is in the site's status. */
function urlAwaited(job: JobRecord, status: string | undefined): string | undefined {
  if (job.state === 'preparing') return /^WAITING \((.*)\)$/s.exec(status ?? '')?.[1];
  const result = job.state === 'finished' ? readString(job.attrs, 'GryphusUrlWait') : undefined;
  return result && `${result} It is retried for ten minutes; then the job is held, and its results stay at the site.`;
}

/** Of the jobs that start together with a parallel one, those that will not come by themselves. */
async function missingOf(queue: Queue, { id, attrs }: JobRecord): Promise<string[]> {
  const all = togetherWith(attrs);
  if (all === 1) return [];
  const found = await queue.get(Array.from({ length: all }, (_, proc) => ({ cluster: id.cluster, proc })));
  const known = new Map(found.map((one) => [one.id.proc, one]));
  return Array.from({ length: all }, (_, proc) => proc).flatMap((proc) => {
    const one = known.get(proc);
    const name = formatJobId({ cluster: id.cluster, proc });
    if (!one || isEnd(one.state)) return [`Job ${name} has left the queue, and without it none of them starts.`];
    return LIFE[one.state].shows === 'held' ? [`Job ${name}, which starts together with it, is held.`] : [];
  });
}

async function logOwed(queue: Queue, job: JobRecord): Promise<string[]> {
  const path = userLogPath(job.attrs);
  const owed = path === undefined ? undefined : (await owedLogs(queue.kv)).logs.find((one) => one.path === path);
  return owed ? [`Its log ${owed.path} cannot be written now (${owed.error}); its events are kept.`] : [];
}

/** Sites that get no pilots for a job in a container. */
async function withoutRuntimes(queue: Queue, job: JobRecord, sites: House['sites']): Promise<string[]> {
  if (readBoolean(job.attrs, 'WantContainer') !== true && readBoolean(job.attrs, 'WantDocker') !== true) return [];
  const { lacksRuntime, runtimesSeen } = await import('../glidein/runtimes-seen.ts');
  const now = Math.floor(Date.now() / 1000);
  const seen = [...(await runtimesSeen(queue.kv, now))];
  const lacking = seen.filter(
    ([name, one]) => (sites.get(name)?.glidein.max ?? 0) > 0 && lacksRuntime(adOf(job.attrs), one),
  );
  return lacking.map(([name, { at, message }]) => {
    const because = message === undefined ? '' : ` (${message.replace(/\.$/, '')})`;
    const ago = Math.max(1, Math.round((now - at) / 60));
    return `Site ${name} gets no pilots for it: ${ago} min ago those there could not run its container${because}.`;
  });
}

function getWorkers({ cpus, memoryMb }: NonNullable<WaitInPool['wants']>, none: boolean): string[] {
  const size = `${cpus > 1 ? ` --cores ${cpus}` : ''}${memoryMb > 1024 ? ` --memory ${memoryMb}M` : ''}`;
  return [
    `gryphus glidein start --site NAME -n COUNT${size}, for workers at a site`,
    ...(none ? ['pool.local_worker = true in config.toml, for this machine'] : []),
  ];
}

/** Submit commands that a hold's reason may name as the remedy, and the matching job attributes. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  batch_queue: 'BatchQueue',
  batch_project: 'BatchProject',
  batch_runtime: 'BatchRuntime',
  batch_extra_submit_args: 'BatchExtraSubmitArgs',
  request_cpus: 'RequestCpus',
  request_memory: 'RequestMemory',
  request_gpus: 'RequestGPUs',
};

function attributesNamed(reason: string): string[] {
  return Object.keys(ATTRIBUTES)
    .filter((command) => reason.includes(command))
    .map((command) => ATTRIBUTES[command] ?? '');
}

/** How far its inputs are on the way to the site, or its results on the way home; also other transfers under way. */
async function underWay(queue: Queue, job: JobRecord): Promise<readonly string[]> {
  if (job.state !== 'preparing' && job.state !== 'finished') return [];
  const [way, to] = job.state === 'preparing' ? (['to', `to ${job.site}`] as const) : (['from', 'home'] as const);
  const all = await sendingOf(queue, way, `${job.manager}/${job.site}`);
  return all.map(({ path, bytes, done, resumed, since }) => {
    const seconds = Math.max(1, (Date.now() - since) / 1000);
    const rate = (done - resumed) / seconds;
    const left = rate > 0 && done < bytes ? `, about ${Math.ceil((bytes - done) / rate)} s left` : '';
    const percent = Math.floor((100 * done) / Math.max(1, bytes));
    return `On its way ${to}: ${path}, ${megabytes(done)} of ${megabytes(bytes)} (${percent} %${left}).`;
  });
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

const WAITS: Readonly<Partial<Record<State, string>>> = {
  preparing: 'Its files are being sent to site SITE.',
  prepared: 'Site SITE has its files; it is about to be submitted there.',
  committed: 'It waits in the queue of site SITE.',
  running: 'It runs at site SITE.',
  suspended: 'Site SITE has suspended it.',
  unknown: 'Site SITE does not answer; it was waiting there when last heard of.',
  'unknown-running': 'Site SITE does not answer; it was running there when last heard of.',
  finished: 'It has ended at site SITE; its results are on their way home.',
  fetched: 'It has ended; its results are home.',
  completing: 'It has completed; site SITE is cleaned up.',
  requeueing: 'Its policy restarts it.',
  restarting: 'It was released; its earlier run at site SITE is being withdrawn first.',
  withdrawing: 'It is being withdrawn from site SITE.',
  removing: 'It is removed; site SITE has yet to confirm that it stopped.',
  completed: 'It has completed.',
  removed: 'It was removed.',
};

/** Phrases where the pool differs from other sites. */
const IN_POOL: Readonly<Partial<Record<State, string>>> = {
  prepared: 'It is entering the pool',
  committed: 'It waits for a slot of the pool',
  running: 'It runs in the pool',
  suspended: 'It is suspended, in its slot of the pool',
};

function summaryOf(job: JobRecord, connection: ConnectionView | undefined, site: SiteRecord | undefined): string {
  if (LIFE[job.state].shows === 'held') {
    const reason = readString(job.attrs, 'HoldReason') ?? 'no reason was given';
    return `It is held: ${reason} (code ${readNumber(job.attrs, 'HoldReasonCode') ?? 0})`;
  }
  const host = readString(job.attrs, 'RemoteHost');
  const pooled = job.site === POOL_SITE.name ? IN_POOL[job.state] : undefined;
  const where = LIFE[job.state].shows === 'idle' || host === undefined ? '' : `, on ${host}`;
  if (pooled !== undefined) return `${pooled}${where}.`;
  const started = job.state !== 'idle' && job.state !== 'preparing';
  if (started || (job.state === 'preparing' && connection?.connection === 'up')) {
    return (WAITS[job.state] ?? '').replace('SITE', job.site);
  }
  if (!site) return `It waits for site ${job.site}, which is no longer configured.`;
  if (connection?.connection === 'needs-login') return `It waits for site ${job.site}, which needs your log-in.`;
  if (connection && connection.connection !== 'up') return `It waits for site ${job.site}, which cannot be used now.`;
  return `It waits here for a free place at site ${job.site}.`;
}

/** The broker's explanation for a job that it has to place. */
async function choiceOf(
  queue: Queue,
  job: JobRecord,
  sites: ReadonlyMap<string, SiteRecord>,
): Promise<{ readonly summary?: string; readonly details: readonly string[] }> {
  const because = readString(job.attrs, 'GryphusChoice');
  const unplaced = job.site === '' && job.state === 'idle';
  if (!unplaced && because === undefined) return { details: [] };
  const { explainChoice, explainFlood, turnedAway } = await import('../broker/explain.ts');
  const { candidates } = await import('./site-ads.ts');
  const [ad, all, now] = [adOf(job.attrs), await candidates(queue, sites), Math.floor(Date.now() / 1000)];
  const tried = readString(job.attrs, 'GryphusTakenBackFrom');
  const earlier = tried === undefined ? [] : [`It was withdrawn from ${tried}, where it had waited too long.`];
  if (!unplaced) {
    const waits = JOB_STATUS[LIFE[job.state].shows] === JOB_STATUS.idle;
    const others = waits ? turnedAway(ad, all, now) : [];
    return { details: [`The broker chose ${job.site}, ${because}.`, ...earlier, ...others] };
  }
  if (readBoolean(job.attrs, 'WantFlood')) {
    const [candidates] = await queue.candidates.of([job.id]);
    return explainFlood(ad, all, candidates?.open ?? [], candidates?.refused ?? [], now);
  }
  const { summary, details } = explainChoice(ad, all, now);
  const rests = [...(await siteBackoffs(queue.kv))].flatMap(([name, { outOfUse }]) =>
    outOfUse && sites.has(name) ? [restsText(name, outOfUse, now)] : [],
  );
  return { summary, details: [...earlier, ...rests, ...details] };
}

function restsText(site: string, { message, probeAt }: NonNullable<BackoffView['outOfUse']>, now: number): string {
  return `Site ${site} is out of use; one job is tried there now and then, next at ${clockText(probeAt / 1000, now)}: ${message}`;
}

async function ahead(queue: Queue, job: JobRecord, site: SiteRecord | undefined): Promise<string[]> {
  const { places } = await queue.totals();
  const here = places.filter((place) => place.site === job.site && place.manager === job.manager);
  const count = (wanted: (state: State) => boolean) =>
    here.filter((place) => wanted(place.state)).reduce((sum, place) => sum + place.jobs, 0);
  const idle = count((state) => state === 'idle');
  const there = count((state) => ['prepare', 'commit', 'watch'].includes(LIFE[state].does));
  const limit = site ? ` of at most ${site.limits.queued}` : '';
  return [`${idle} of your jobs wait here for ${job.site}; it has ${there}${limit}.`];
}
