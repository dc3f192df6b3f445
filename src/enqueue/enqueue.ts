import { statSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { Paths } from '../config/paths.ts';
import { SiteBook } from '../config/follow.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { readString } from '../job/values.ts';
import type { ProcInput, Queue, SubmitInput } from '../queue/api.ts';
import { type Cluster, fullAds, parseSubmit } from '../submit/api.ts';
import { localWorld } from '../submit/local-world.ts';
import { proxyCheck } from './proxy-check.ts';
import { Placement } from './placement.ts';
import { SiteChooser } from './site-choice.ts';
import { Unheard } from './unheard.ts';
import { UrlCheck } from './url-check.ts';
import type { DryRun, Submitted, SubmitRequest } from './types.ts';

/** Where jobs may go, and whose they are. */
export interface Enqueuer {
  readonly queue: Queue;
  readonly chooser: SiteChooser;
  readonly owner: string;
  /** What a description says that does not say it itself: `name=value`. */
  readonly defaults: readonly string[];
}

export async function openEnqueuer(queue: Queue, paths: Paths, owner: string): Promise<Enqueuer> {
  const settings = await loadSettings(paths);
  const book = new SiteBook(paths);
  const chooser = new SiteChooser(await book.sites(), settings['submit.default_site'], book.problems);
  return { queue, owner, chooser, defaults: requestDefaults(settings) };
}

/** What jobs ask for that ask for nothing, where the settings say something else than HTCondor does. */
function requestDefaults(settings: Settings): string[] {
  const cpus = settings['submit.default_cpus'];
  const memory = settings['submit.default_memory'];
  const disk = settings['submit.default_disk'];
  return [
    ...(cpus === 1 ? [] : [`request_cpus=${cpus}`]),
    ...(memory === 128 * 2 ** 20 ? [] : [`request_memory=${Math.ceil(memory / 2 ** 20)}M`]),
    ...(disk === undefined ? [] : [`request_disk=${Math.ceil(disk / 2 ** 10)}K`]),
  ];
}

/** Reads the description and puts its jobs into the queue; resolves when they are on disk. */
export async function submitCluster(
  queue: Queue,
  request: SubmitRequest,
  paths: Paths,
  owner: string,
): Promise<Submitted> {
  const enqueuer = await openEnqueuer(queue, paths, owner);
  const cluster = parseRequest(request, owner, { defaults: enqueuer.defaults });
  // Its results are the submitter's files, whatever the daemons' own umask is.
  return enqueue(enqueuer, cluster, { GryphusUmask: String(process.umask()) });
}

/** Puts a cluster into the queue, each job with its site. `more`: attributes that win over the description's. */
export async function enqueue(
  { queue, chooser, owner }: Enqueuer,
  cluster: Cluster,
  more: AttrTexts = {},
  dag?: NonNullable<SubmitInput['dag']>,
): Promise<Submitted> {
  const clusterAd = { ...cluster.clusterAd, ...limitsOf(cluster), ...more };
  const placement = new Placement(chooser, owner, clusterAd);
  const first = firstCount(cluster);
  const logs = new LogDirectories();
  const urls = new UrlCheck();
  const unheard = new Unheard();
  let id = 0;
  const submitted = await queue.submit({
    clusterAd,
    manager: placement.manager,
    site: placement.known.name,
    ...(dag === undefined ? {} : { dag }),
    ...(cluster.late ? { digest: cluster.digest(), total: cluster.total } : {}),
    onCluster: (given) => {
      id = given;
    },
    procs: inputs(
      () => cluster.procs({ cluster: id, count: first }),
      (attrs) => {
        logs.check(attrs, clusterAd);
        urls.check(attrs, clusterAd);
        unheard.look(placement.siteOf(attrs), attrs, clusterAd);
        return placement.of(attrs);
      },
    ),
  });
  const warnings = [...cluster.warnings, ...unheard.warnings];
  return { cluster: submitted.cluster, queued: submitted.procs, total: cluster.total, warnings };
}

/** What a submit would make; nothing is written, no daemon is needed. */
export async function dryRun(request: SubmitRequest, paths: Paths): Promise<DryRun> {
  const { userInfo } = await import('node:os');
  const settings = await loadSettings(paths);
  const cluster = parseRequest(request, settings.owner ?? userInfo().username, {
    dryRun: true,
    defaults: requestDefaults(settings),
  });
  // As condor_submit: what will be made late is not made by a dry run.
  return { warnings: cluster.warnings, ads: cluster.late ? [] : fullAds(cluster), total: cluster.total };
}

/** The cluster that a description makes on this machine now. */
export function parseRequest(
  request: SubmitRequest,
  owner: string,
  { dryRun = false, defaults = [] }: { readonly dryRun?: boolean; readonly defaults?: readonly string[] } = {},
): Cluster {
  const domain = hostname();
  return parseSubmit({
    text: request.text,
    ...(request.file === undefined || request.file === '-' ? {} : { file: request.file }),
    cwd: request.cwd ?? process.cwd(),
    world: localWorld({ readOnly: dryRun }),
    policy: { dryRun, broker: true, gridTypes: ['gt2'], checkProxy: proxyCheck() },
    owner,
    now: Math.floor(Date.now() / 1000),
    machine: { uidDomain: domain, fileSystemDomain: domain },
    assignments: [...defaults, ...(request.assign ?? [])],
    ...(request.append === undefined ? {} : { appends: request.append }),
    ...(request.queue === undefined ? {} : { queueArgs: request.queue }),
    ...(request.batchName === undefined ? {} : { batchName: request.batchName }),
  });
}

/** What the Scheduler keeps to when it makes the others, as HTCondor's schedd has it in the cluster's ad. */
function limitsOf({ late }: Cluster): AttrTexts {
  return {
    ...(late?.maxMaterialize === undefined ? {} : { JobMaterializeLimit: String(late.maxMaterialize) }),
    ...(late?.maxIdle === undefined ? {} : { JobMaterializeMaxIdle: String(late.maxIdle) }),
  };
}

/** With late materialization as many as its limits let in now; the Scheduler makes the others. */
function firstCount({ late, total }: Cluster): number {
  if (!late) return total;
  return Math.min(total, late.maxMaterialize ?? total, late.maxIdle ?? total, 5000);
}

function* inputs(
  procs: () => ReturnType<Cluster['procs']>,
  place: (attrs: AttrTexts) => Pick<ProcInput, 'site' | 'manager'>,
): Generator<ProcInput> {
  for (const { proc, attrs } of procs()) yield { proc, attrs, ...place(attrs) };
}

function sourceOf(attrs: AttrTexts): { get(name: string): string | undefined } {
  return { get: (name) => attrs[name] ?? undefined };
}

/** Refuses a log whose directory is not there: later nobody would be told of anything. Each directory is looked at once. */
class LogDirectories {
  readonly #seen = new Set<string>();
  #shared = false;

  check(own: AttrTexts, shared: AttrTexts): void {
    if (!('UserLog' in own) && this.#shared) return;
    this.#shared = true;
    const all = { ...shared, ...own };
    const log = readString(sourceOf(all), 'UserLog');
    if (log === undefined || log === '') return;
    const directory = dirname(resolve(readString(sourceOf(all), 'Iwd') ?? '/', log));
    if (this.#seen.has(directory)) return;
    this.#seen.add(directory);
    if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory()) {
      throw new GryphusError('bad-input', `The log ${log} cannot be written: there is no directory ${directory}.`, {
        suggestions: [`mkdir -p '${directory}', or correct the line \`log = ${log}\`.`],
      });
    }
  }
}
