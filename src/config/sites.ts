import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BACKEND_NAMES } from '../backends/registry.ts';
import { GryphusError } from '../errors.ts';
import { didYouMean } from '../util/did-you-mean.ts';
import { makePrivateDirs, writeWhole } from '../util/private-file.ts';
import { duration, integer, memorySize, moment, oneOf, real, remoteDirectory, text, texts } from './kinds.ts';
import { formatGramContact, gramSiteTarget } from './gram-resource.ts';
import { machineAttributes, machineResources } from './machine-kinds.ts';
import { POLICY_NAMES, type PolicyName } from './owner-policies.ts';
import type { Paths } from './paths.ts';
import { parseSiteUrl, type SiteTarget, siteUrl } from './site-url.ts';
import { entry, readTable, type Values } from './table.ts';
import { parseToml, readSource } from './toml.ts';

/** The batch systems that a site may run. */
export const BATCH_SYSTEMS = [...BACKEND_NAMES, 'gt2'] as const;
/** The pool is a site too, but not a configured one. */
export type BatchSystem = (typeof BATCH_SYSTEMS)[number] | 'pool';

/** Every key of `sites/<name>.toml`. Once read, times are in seconds. */
export const SITE_KEYS = {
  url: entry(
    siteUrl,
    'local',
    '`local`, `ssh://user@host:port`, a Host of `~/.ssh/config`, or `gt2://HOST/jobmanager-NAME`.',
  ),
  batch: entry(
    oneOf(BATCH_SYSTEMS),
    'fork',
    'The batch system; `fork`: plain processes, `gryphus`: another Gryphus, `gt2`: a `gt2://` site.',
  ),
  transport: entry(oneOf(['ssh2', 'openssh']), 'ssh2', 'The built-in ssh client, or the `ssh` program.'),
  prelude: entry(
    text,
    undefined,
    'Shell lines to run at the site before any command of ours, such as `module load slurm`.',
  ),
  scratch: entry(
    remoteDirectory,
    undefined,
    "Directory at the site for our jobs, below the site's name; default: `~/.gryphus`.",
  ),
  queue: entry(text, undefined, 'Queue or partition for jobs that name none.'),
  project: entry(text, undefined, 'Project or account for jobs that name none.'),
  parallel_environment: entry(
    text,
    undefined,
    'With `sge`, the parallel environment (`-pe`) for jobs with several nodes; default: one that gives each node the slots that the job asks for.',
  ),
  extra_args: entry(texts, [], 'Additional arguments for every submit command of the batch system.'),
  walltime: entry(duration, undefined, 'Time limit for jobs that name none.'),
  urls: entry(
    oneOf(['agent', 'direct']),
    'agent',
    'Who transfers inputs and results that are URLs: the agent (each input once for all jobs), or the site itself with curl or wget (`direct`; inputs only, from URLs that need no log-in).',
  ),
  cost: entry(real(0), 0, 'Cost of a core hour; cheaper sites are preferred.'),
  credential: entry(text, undefined, 'Name of the credential that the site needs; default: only your ssh keys.'),
  allocation_end: entry(
    moment,
    undefined,
    'When your allocation there ends; you get an alarm in advance, as for a credential.',
  ),
  'glidein.max': entry(integer(0), 0, 'The largest number of pilots that the factory may have there at once; 0: none.'),
  'glidein.cores': entry(integer(1), 1, 'Cores of a pilot.'),
  'glidein.memory': entry(memorySize, undefined, 'Memory of a pilot; default: what the batch system assigns.'),
  'glidein.gpus': entry(integer(0), 0, 'GPUs of a pilot.'),
  'glidein.walltime': entry(duration, undefined, "A pilot's time limit; default: `walltime`, else one hour."),
  'glidein.scratch': entry(
    text,
    '$TMPDIR',
    "A node's local directory for pilots, or `$NAME` of a variable that names it; if there is none, the job's directory.",
  ),
  'glidein.policy': entry(
    oneOf(POLICY_NAMES),
    'always',
    'When jobs run in its pilots, on nodes that have owners: as `pool.policy`.',
  ),
  'glidein.attributes': entry(
    machineAttributes,
    undefined,
    'Additional attributes of its pilots: as `pool.attributes`.',
  ),
  'glidein.resources': entry(
    machineResources,
    undefined,
    'Custom resources of each of its pilots: as `pool.resources`.',
  ),
  'limits.queued': entry(integer(1), undefined, 'The largest number of our jobs in its queue, waiting and running.'),
  'limits.running': entry(
    integer(1),
    undefined,
    'The largest number of our jobs running at once; default with `fork`: its number of cores.',
  ),
  'limits.submits_per_minute': entry(integer(1), undefined, 'The largest number of jobs submitted within a minute.'),
  'limits.poll_min': entry(duration, undefined, 'The shortest time between two polls of its queue.'),
  'limits.poll_max': entry(
    duration,
    undefined,
    'The longest time between two polls, when nothing changes. A user with more than 60 sites in use has a quarter of a second for each of them, if that is longer.',
  ),
} as const;

/** The default limits of a batch system. */
export const BATCH_LIMITS: Readonly<Record<'fork' | 'queue', SiteLimits>> = {
  fork: { queued: 100_000, running: undefined, submitsPerMinute: 100_000, pollMin: 1, pollMax: 15 },
  queue: { queued: 2000, running: undefined, submitsPerMinute: 6000, pollMin: 5, pollMax: 60 },
};

export interface SiteLimits {
  readonly queued: number;
  /** `undefined`: no limit of ours (fork: the site's cores). */
  readonly running: number | undefined;
  readonly submitsPerMinute: number;
  /** Seconds. */
  readonly pollMin: number;
  readonly pollMax: number;
}

/** A site as `sites/NAME.toml` describes it, checked, with its defaults (docs/configuration.md). */
export interface SiteRecord {
  readonly name: string;
  readonly url: string;
  readonly target: SiteTarget;
  readonly batch: BatchSystem;
  readonly transport: 'ssh2' | 'openssh';
  readonly prelude: string | undefined;
  /** At the site; may begin with `~/`. */
  readonly scratch: string | undefined;
  readonly queue: string | undefined;
  readonly project: string | undefined;
  readonly parallelEnvironment: string | undefined;
  readonly extraArgs: readonly string[];
  /** Seconds. */
  readonly walltime: number | undefined;
  readonly urls: 'agent' | 'direct';
  readonly cost: number;
  readonly credential: string | undefined;
  /** Unix seconds. */
  readonly allocationEnd: number | undefined;
  readonly limits: SiteLimits;
  readonly glidein: GlideinSettings;
}

/** The pilots of a site. */
export interface GlideinSettings {
  readonly max: number;
  readonly cores: number;
  readonly memoryMb: number | undefined;
  readonly gpus: number;
  /** Seconds. */
  readonly walltime: number;
  readonly scratch: string;
  readonly policy: PolicyName;
  readonly attributes: Readonly<Record<string, string>>;
  readonly resources: Readonly<Record<string, number>>;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** This machine, with `fork`; it always exists, unless a file of that name redefines it. */
export const LOCAL_SITE: SiteRecord = siteOf('local', readTable(SITE_KEYS, {}, { file: 'local', text: '' }));

/**
 * Where jobs of the scheduler universe run: on this machine, at once, and without using slots of `local`, so that a DAG
 * manager never waits for its own nodes. It is not a user's site: no list shows it, and no user's site can have its
 * name.
 */
export const SCHEDULER_SITE: SiteRecord = {
  ...LOCAL_SITE,
  name: '.scheduler',
  limits: { ...BATCH_LIMITS.fork, running: 10_000 },
};

/** The personal pool: workers on this machine and at every site, which take the next job when they are free. */
export const POOL_SITE: SiteRecord = {
  ...LOCAL_SITE,
  name: 'pool',
  batch: 'pool',
  // The central manager reports changes without being polled.
  limits: { queued: 20_000, running: undefined, submitsPerMinute: 1_000_000, pollMin: 1, pollMax: 60 },
};

/** Its jobs run in directories of this machine, so no transfer is needed. */
export function sharesHome(site: Pick<SiteRecord, 'target' | 'batch'>): boolean {
  return site.target.kind === 'local' && site.batch !== 'pool';
}

/** The configured sites. A GRAM service is a site by its name alone, and appears in no list. */
export class Sites extends Map<string, SiteRecord> {
  override get(name: string): SiteRecord | undefined {
    return super.get(name) ?? gramSite(name);
  }
}

/** The site that `grid_resource = gt2 CONTACT` means if no file describes it. */
export function gramSite(name: string): SiteRecord | undefined {
  const target = gramSiteTarget(name);
  if (target === undefined) return undefined;
  const url = `gt2://${formatGramContact(target)}`;
  return siteOf(name, readTable(SITE_KEYS, { url }, { file: name, text: '' }));
}

/** All sites by name, `local` first, then alphabetically. A GryphusError 'bad-config' names the file and the line. */
export async function loadSites(paths: Paths): Promise<ReadonlyMap<string, SiteRecord>> {
  const sites = new Sites([[LOCAL_SITE.name, LOCAL_SITE]]);
  for (const name of siteFiles(paths)) sites.set(name, await loadSiteFile(paths, name));
  return sites;
}

/** The user's sites, the pool, and the site of the scheduler universe. */
export function withBuiltIn(sites: ReadonlyMap<string, SiteRecord>): ReadonlyMap<string, SiteRecord> {
  return new Sites([...sites, [POOL_SITE.name, POOL_SITE], [SCHEDULER_SITE.name, SCHEDULER_SITE]]);
}

/** Reads one site; a GryphusError 'site-unknown' if there is no such site. */
export async function loadSite(paths: Paths, name: string): Promise<SiteRecord> {
  if (NAME.test(name) && existsSync(siteFile(paths, name))) return loadSiteFile(paths, name);
  if (name === LOCAL_SITE.name) return LOCAL_SITE;
  const service = gramSite(name);
  if (service) return service;
  const near = didYouMean(name, [LOCAL_SITE.name, ...siteFiles(paths)]);
  throw new GryphusError('site-unknown', `There is no site '${name}'.`, {
    suggestions: [
      ...(near ? [`Did you mean '${near}'?`] : []),
      'See `gryphus site list`; add one with `gryphus site add NAME ssh://user@host --batch slurm`.',
    ],
  });
}

/** Writes a site's file from keys as a user would write them; writes nothing unless the result is valid. */
export async function saveSite(
  paths: Paths,
  name: string,
  keys: Readonly<Record<string, unknown>>,
): Promise<SiteRecord> {
  const { site, source } = await writtenSite(paths, name, keys);
  makePrivateDirs(paths.sitesDir);
  writeWhole(source.file, source.text);
  return site;
}

/** The site that `saveSite` would write. */
export async function siteFrom(
  paths: Paths,
  name: string,
  keys: Readonly<Record<string, unknown>>,
): Promise<SiteRecord> {
  return (await writtenSite(paths, name, keys)).site;
}

async function writtenSite(paths: Paths, name: string, keys: Readonly<Record<string, unknown>>) {
  checkName(name);
  const { stringify } = await import('smol-toml');
  const source = { file: siteFile(paths, name), text: stringify(nest(keys)) };
  return { source, site: siteOf(name, readTable(SITE_KEYS, await parseToml(source), source)) };
}

/** `false` if there was no such file. */
export function removeSite(paths: Paths, name: string): boolean {
  if (!NAME.test(name) || !existsSync(siteFile(paths, name))) return false;
  rmSync(siteFile(paths, name));
  return true;
}

/** The file that describes the site of this name, if it exists. */
export function siteFile(paths: Paths, name: string): string {
  return join(paths.sitesDir, `${name}.toml`);
}

function siteFiles(paths: Paths): string[] {
  if (!existsSync(paths.sitesDir)) return [];
  const names = readdirSync(paths.sitesDir).filter((file) => file.endsWith('.toml'));
  return names.map((file) => file.slice(0, -'.toml'.length)).sort();
}

async function loadSiteFile(paths: Paths, name: string): Promise<SiteRecord> {
  checkName(name);
  const source = readSource(siteFile(paths, name), paths);
  return siteOf(name, readTable(SITE_KEYS, await parseToml(source), source));
}

function checkName(name: string): void {
  if (name === POOL_SITE.name) {
    throw new GryphusError('bad-input', `'${name}' is the personal pool: no other site can have the name.`, {
      suggestions: ['Give the site another name.'],
    });
  }
  if (NAME.test(name)) return;
  throw new GryphusError('bad-input', `'${name}' cannot be the name of a site.`, {
    suggestions: ['Use up to 64 letters, digits, dots, dashes and underscores, a letter or digit first.'],
  });
}

function siteOf(name: string, v: Values<typeof SITE_KEYS>): SiteRecord {
  const target = parseSiteUrl(v.url);
  if (v.batch === 'gt2' && target.kind !== 'gram') {
    throw new GryphusError('bad-config', `Site ${name} has batch = "gt2" and no GRAM service in its url.`, {
      suggestions: ['Write url = "gt2://HOST/jobmanager-NAME", or name the batch system that is there.'],
    });
  }
  const preset = v.batch === 'fork' && target.kind !== 'gram' ? BATCH_LIMITS.fork : BATCH_LIMITS.queue;
  return {
    name,
    url: v.url,
    target,
    batch: target.kind === 'gram' ? 'gt2' : v.batch,
    transport: v.transport,
    prelude: v.prelude,
    scratch: v.scratch,
    queue: v.queue,
    project: v.project,
    parallelEnvironment: v.parallel_environment,
    extraArgs: v.extra_args,
    walltime: v.walltime,
    urls: v.urls,
    cost: v.cost,
    credential: v.credential,
    allocationEnd: v.allocation_end,
    glidein: {
      max: v['glidein.max'],
      cores: v['glidein.cores'],
      memoryMb: v['glidein.memory'] === undefined ? undefined : Math.floor(v['glidein.memory'] / 2 ** 20),
      gpus: v['glidein.gpus'],
      walltime: v['glidein.walltime'] ?? v.walltime ?? 3600,
      scratch: v['glidein.scratch'],
      policy: v['glidein.policy'],
      attributes: v['glidein.attributes'] ?? {},
      resources: v['glidein.resources'] ?? {},
    },
    limits: {
      queued: v['limits.queued'] ?? preset.queued,
      running: v['limits.running'] ?? preset.running,
      submitsPerMinute: v['limits.submits_per_minute'] ?? preset.submitsPerMinute,
      pollMin: v['limits.poll_min'] ?? preset.pollMin,
      pollMax: Math.max(v['limits.poll_max'] ?? preset.pollMax, v['limits.poll_min'] ?? preset.pollMin),
    },
  };
}

/** `{ 'limits.queued': 5 }` becomes `{ limits: { queued: 5 } }`. */
function nest(keys: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const tree: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(keys)) {
    const names = key.split('.');
    const last = names.pop() ?? key;
    let at = tree;
    for (const name of names) at = (at[name] ??= {}) as Record<string, unknown>;
    at[last] = value;
  }
  return tree;
}
