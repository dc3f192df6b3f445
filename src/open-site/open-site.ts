import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { identityFilesOf } from '../config/credential-needs.ts';
import { loadCredentials } from '../config/credentials.ts';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { SCHEDULER_SITE, type SiteRecord } from '../config/sites.ts';
import { type JobManagerOptions, openJobManagerSite } from '../jobmanager/client.ts';
import type { AuditableSite } from '../site/audit.ts';
import type { Sending } from '../site/contract.ts';
import type { Transport } from '../transport/contract.ts';
import { openTransport } from '../transport/open-transport.ts';
import type { Prompt } from '../transport/prompt.ts';

export interface OpenSiteOptions {
  /**
   * The GridManager's identity: each credential has a directory of its own; without it, the directory for no
   * credential.
   */
  readonly identity?: string;
  /** The agent's id, which its directory at the site belongs to. */
  readonly agent: string;
  readonly prompt: Prompt;
  /** How long the site keeps unused files; by default, the JobManager's own limits. */
  readonly cares?: SiteCares;
  /** Where credentials are configured: a site's own key replaces those of the ssh configuration. */
  readonly paths: Pick<Paths, 'configDir' | 'stateDir'>;
  /** The GridManager's identity; absent for a command, which accesses the site alongside the GridManager. */
  readonly manager?: string;
  /** An open connection to use, which the caller must close; by default, one of its own. */
  readonly transport?: Transport;
  /** The current mark of the agent's queue, and the key that signs it; only for a GridManager. */
  readonly mark?: NonNullable<JobManagerOptions['mark']>;
  /** Who serves the agent; absent: the site is only looked at, whoever serves it. */
  readonly holder?: NonNullable<JobManagerOptions['holder']>;
  /** If set, PREPARE answers while large inputs are still being transferred; called with the progress. */
  readonly onSending?: (all: readonly Sending[]) => void;
  /** The same for large results: if set, a fetch does not wait for them. */
  readonly onComing?: (all: readonly Sending[]) => void;
  /** Called with the site and its connection; returns a function that is called before these are closed. */
  readonly onOpen?: (site: AuditableSite, transport: Transport) => () => void;
}

/** Opens a connection to a configured site that has a machine of its own. */
export async function transportTo(
  record: SiteRecord,
  { prompt, paths }: Pick<OpenSiteOptions, 'prompt'> & { readonly paths: Pick<Paths, 'configDir'> },
): Promise<Transport> {
  const identityFiles = identityFilesOf(record, await loadCredentials(paths));
  return openTransport(record.url, {
    prompt,
    ...(identityFiles === undefined ? {} : { identityFiles }),
    ...(record.transport === 'openssh' ? { transport: 'openssh' as const } : {}),
  });
}

export type SiteCares = Required<Pick<JobManagerOptions, 'commitWithin' | 'cacheFor' | 'cacheSize'>>;

/** The limits of a site's cleanup, by the current settings. */
export function siteCares(
  settings: Pick<Settings, 'gridmanager.commit_timeout' | 'cache.site_keep_for' | 'cache.site_size'>,
): SiteCares {
  return {
    commitWithin: settings['gridmanager.commit_timeout'],
    cacheFor: settings['cache.site_keep_for'],
    cacheSize: settings['cache.site_size'],
  };
}

/** How long a batch waits for large inputs or results, milliseconds. */
const CONTENT_MS = 1000;

/**
 * The agent's directory at the site. Two sites with one home directory (a front machine and its cluster) must not take
 * each other's events, nor may the GridManagers of two credentials at one site.
 */
function scratchOf(
  record: SiteRecord,
  identity: string | undefined,
): { readonly scratch: string; readonly ours: number } {
  const site = `${(record.scratch ?? '~/.gryphus').replace(/\/+$/, '')}/${record.name}`;
  if (identity === undefined || !identity.includes('+')) return { scratch: site, ours: 1 };
  return { scratch: `${site}/+${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`, ours: 2 };
}

/** For each GridManager and site. */
function packsOf(stateDir: string, site: string, identity = ''): string {
  const name = createHash('sha256').update(`${site}\0${identity}`).digest('hex').slice(0, 16);
  return join(stateDir, 'packs', name);
}

/** Opens a configured site; closing it closes its connection. */
export async function openSite(record: SiteRecord, options: OpenSiteOptions): Promise<AuditableSite> {
  if (record.target.kind === 'gram') {
    const { openGram } = await import('./open-gram.ts');
    return await openGram(record, record.target, options);
  }
  const { agent, identity, prompt, paths, cares, onOpen, mark, holder, onSending, onComing } = options;
  const transport = options.transport ?? (await transportTo(record, { prompt, paths }));
  const site = openJobManagerSite({
    name: record.name,
    agentId: agent,
    transport,
    backend: record.batch,
    options: {
      ...(record.queue === undefined ? {} : { queue: record.queue }),
      ...(record.prelude === undefined ? {} : { prelude: record.prelude }),
      ...scratchOf(record, identity),
      // Like HTCondor, which asks a job of the scheduler universe to end and gives it time: a DAG has a final node.
      ...(record === SCHEDULER_SITE ? { killAfter: Number.POSITIVE_INFINITY, giveUp: 1000 } : {}),
      // Plain processes: no batch system that frequent queries could overload.
      ...(record.batch === 'fork'
        ? {}
        : { lookMin: record.limits.pollMin * 1000, lookMax: record.limits.pollMax * 1000 }),
      ...cares,
      ...(mark === undefined ? {} : { mark }),
      ...(holder === undefined ? {} : { holder }),
      ...(onSending === undefined
        ? {}
        : { onSending, contentPatience: CONTENT_MS, packs: packsOf(paths.stateDir, record.name, identity) }),
      ...(onComing === undefined ? {} : { onComing, resultsPatience: CONTENT_MS }),
      ...(record.limits.running === undefined ? {} : { slots: record.limits.running }),
    },
  });
  const closeSite = site.close.bind(site);
  const ended = onOpen?.(site, transport);
  site.close = async () => {
    ended?.();
    await closeSite();
    if (options.transport === undefined) await transport.close();
  };
  return site;
}
