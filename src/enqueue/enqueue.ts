import { hostname } from 'node:os';
import type { Paths } from '../config/paths.ts';
import { SiteBook } from '../config/follow.ts';
import { loadSettings, type Settings } from '../config/settings.ts';
import { GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { ProcInput, Queue, SubmitInput } from '../queue/api.ts';
import { type Cluster, fullAds, parseSubmit, type ParseRequest as Description } from '../submit/api.ts';
import { localWorld } from '../submit/local-world.ts';
import { LogCheck } from './log-check.ts';
import { proxyCheck } from './proxy-check.ts';
import { checkNodes, TogetherCheck, togetherOf } from './nodes-check.ts';
import { OutOfPlace } from './out-of-place.ts';
import { Placement } from './placement.ts';
import { SiteChooser } from './site-choice.ts';
import { UnsupportedRequests } from './unsupported-requests.ts';
import { UrlCheck } from './url-check.ts';
import { fromScript, isScriptRequest } from './script.ts';
import type { DryRun, Submitted, SubmitRequest, Warning } from './types.ts';
import { ownUser } from '../util/own-user.ts';

/** Where jobs may go, and whose they are. */
export interface Enqueuer {
  readonly queue: Queue;
  readonly chooser: SiteChooser;
  readonly owner: string;
  readonly rules: SubmitRules;
}

/** What this installation's settings say about submits. */
export interface SubmitRules {
  /** Defaults for what a description does not set itself: `name=value`. */
  readonly defaults: readonly string[];
  /** The most jobs that one submit may put into the queue. */
  readonly mostJobs?: number;
}

export async function openEnqueuer(queue: Queue, paths: Paths, owner: string): Promise<Enqueuer> {
  const settings = await loadSettings(paths);
  return { queue, owner, chooser: await siteChooser(paths, settings), rules: rulesOf(settings) };
}

export async function siteChooser(paths: Paths, settings: Settings): Promise<SiteChooser> {
  const book = new SiteBook(paths);
  return new SiteChooser(await book.sites(), settings['submit.default_site'], book.problems);
}

/** `defaults`: requests for jobs that make none, where the settings differ from HTCondor's defaults. */
function rulesOf(settings: Settings): SubmitRules {
  const cpus = settings['submit.default_cpus'];
  const memory = settings['submit.default_memory'];
  const disk = settings['submit.default_disk'];
  const defaults = [
    ...(cpus === 1 ? [] : [`request_cpus=${cpus}`]),
    ...(memory === 128 * 2 ** 20 ? [] : [`request_memory=${Math.ceil(memory / 2 ** 20)}M`]),
    ...(disk === undefined ? [] : [`request_disk=${Math.ceil(disk / 2 ** 10)}K`]),
  ];
  return { defaults, mostJobs: settings['submit.max_jobs'] };
}

/** Reads the description and enqueues its jobs; resolves when they are on disk. */
export async function submitCluster(
  queue: Queue,
  request: SubmitRequest,
  paths: Paths,
  owner: string,
): Promise<Submitted> {
  const enqueuer = await openEnqueuer(queue, paths, owner);
  const { description, warnings } = await described(request, { paths, queue, owner, chooser: enqueuer.chooser });
  const cluster = parseRequest(description, owner, enqueuer.rules);
  for (const [name, text] of Object.entries(description.attributes ?? {}))
    if (text?.includes('\0')) throw new GryphusError('bad-input', `The attribute ${name} has a NUL byte.`);
  // Results belong to the submitter, so the daemons' own umask must not apply.
  const submitted = await enqueue(enqueuer, cluster, {
    ...description.attributes,
    GryphusUmask: String(process.umask()),
  });
  return { ...submitted, warnings: [...warnings, ...submitted.warnings] };
}

/** The request itself, or what a batch script means. */
async function described(
  request: SubmitRequest,
  scope: { readonly paths: Paths; readonly chooser: SiteChooser; readonly owner: string; readonly queue?: Queue },
): Promise<{ readonly description: SubmitRequest; readonly warnings: readonly Warning[] }> {
  return isScriptRequest(request) ? fromScript(request, scope) : { description: request, warnings: [] };
}

/** Enqueues a cluster, each job with its site. `more`: attributes that override the description's. */
export async function enqueue(
  { queue, chooser, owner }: Enqueuer,
  cluster: Cluster,
  more: AttrTexts = {},
  dag?: NonNullable<SubmitInput['dag']>,
): Promise<Submitted> {
  const clusterAd = { ...cluster.clusterAd, ...limitsOf(cluster), ...togetherOf(cluster), ...more };
  const placement = new Placement(chooser, owner, clusterAd);
  const first = firstCount(cluster);
  const logs = new LogCheck();
  const urls = new UrlCheck();
  const unsupported = new UnsupportedRequests();
  const outOfPlace = new OutOfPlace(cluster);
  const together = new TogetherCheck();
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
        const site = placement.siteOf(attrs);
        checkNodes(site, attrs, clusterAd);
        unsupported.look(site, attrs, clusterAd);
        outOfPlace.look(site, attrs, clusterAd);
        return { attrs: together.look(attrs, clusterAd), ...placement.of(attrs) };
      },
    ),
  });
  const warnings = [...cluster.warnings, ...outOfPlace.warnings, ...unsupported.warnings];
  return { cluster: submitted.cluster, queued: submitted.procs, total: cluster.total, warnings };
}

/** What a submit would create; writes nothing and needs no daemon. */
export async function dryRun(request: SubmitRequest, paths: Paths): Promise<DryRun> {
  const settings = await loadSettings(paths);
  const owner = settings.owner ?? ownUser().username;
  const { description, warnings } = await described(request, {
    paths,
    owner,
    chooser: await siteChooser(paths, settings),
  });
  const cluster = parseRequest(description, owner, { dryRun: true, ...rulesOf(settings) });
  // Like condor_submit's: shows no jobs that would be materialized later.
  return {
    get warnings() {
      return [...warnings, ...cluster.warnings];
    },
    ads: cluster.late ? [] : fullAds(cluster),
    total: cluster.total,
  };
}

/** The cluster that a description makes on this machine now. */
export function parseRequest(
  request: SubmitRequest,
  owner: string,
  { dryRun = false, defaults, mostJobs }: SubmitRules & { readonly dryRun?: boolean },
): Cluster {
  const domain = hostname();
  const description = describe(request);
  return parseSubmit({
    ...description,
    cwd: request.cwd ?? process.cwd(),
    world: localWorld({ readOnly: dryRun }),
    policy: {
      ...description.policy,
      ...(mostJobs === undefined ? {} : { mostJobs }),
      dryRun,
      broker: true,
      gridTypes: ['gt2'],
      checkProxy: proxyCheck(),
    },
    owner,
    now: Math.floor(Date.now() / 1000),
    machine: { uidDomain: domain, fileSystemDomain: domain },
    assignments: [...defaults, ...(request.assign ?? [])],
  });
}

/** The part of a request that does not depend on the machine, in the terms of src/submit/. */
export function describe(request: SubmitRequest): Omit<Description, 'cwd' | 'world' | 'owner' | 'now'> {
  const { file, append, assign, queue, batchName, batchId, maxJobs, factory, warnUnused } = request;
  return {
    text: request.text,
    ...(file === undefined || file === '-' ? {} : { file }),
    ...(append === undefined ? {} : { appends: append }),
    ...(assign === undefined ? {} : { assignments: assign }),
    ...(queue === undefined ? {} : { queueArgs: queue }),
    ...(batchName === undefined ? {} : { batchName }),
    ...(batchId === undefined ? {} : { batchId }),
    ...(maxJobs === undefined ? {} : { maxJobs }),
    ...(factory === undefined ? {} : { factory }),
    ...(warnUnused === undefined ? {} : { warnUnused }),
    policy: { checkInputs: request.checkFiles ?? true, allowCrlfScript: request.allowCrlfScript ?? false },
  };
}

/** The limits that the Scheduler obeys when it makes later jobs, kept in the cluster's ad as in HTCondor's schedd. */
function limitsOf({ late }: Cluster): AttrTexts {
  return {
    ...(late?.maxMaterialize === undefined ? {} : { JobMaterializeLimit: String(late.maxMaterialize) }),
    ...(late?.maxIdle === undefined ? {} : { JobMaterializeMaxIdle: String(late.maxIdle) }),
  };
}

/** With late materialization, as many as its limits allow now; the Scheduler makes the rest. */
function firstCount({ late, total }: Cluster): number {
  if (!late) return total;
  return Math.min(total, late.maxMaterialize ?? total, late.maxIdle ?? total, 5000);
}

function* inputs(
  procs: () => ReturnType<Cluster['procs']>,
  place: (attrs: AttrTexts) => Pick<ProcInput, 'attrs' | 'site' | 'manager'>,
): Generator<ProcInput> {
  for (const { proc, attrs } of procs()) yield { proc, ...place(attrs) };
}
