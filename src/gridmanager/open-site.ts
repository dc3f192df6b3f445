import { createHash } from 'node:crypto';
import { identityFilesOf } from '../config/credential-needs.ts';
import { loadCredentials } from '../config/credentials.ts';
import type { Paths } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { SCHEDULER_SITE, type SiteRecord } from '../config/sites.ts';
import type { QueueMark } from '../job/mark.ts';
import { openGram } from './open-gram.ts';
import { type JobManagerOptions, type JobManagerSite, openJobManagerSite } from '../jobmanager/client.ts';
import type { Sending } from '../site/contract.ts';
import type { Transport } from '../transport/contract.ts';
import { openTransport } from '../transport/open-transport.ts';
import type { Prompt } from '../transport/prompt.ts';

export interface OpenSiteOptions {
  /** Whose GridManager it is: each credential has a directory of its own; without it, that of no credential. */
  readonly identity?: string;
  /** The agent's id: whose directory it is at the site. */
  readonly agent: string;
  readonly prompt: Prompt;
  /** How long the site keeps what nobody needs; the JobManager's own limits without it. */
  readonly cares?: SiteCares;
  /** Where credentials are described: a site's own key stands in place of those of the ssh configuration. */
  readonly paths: Pick<Paths, 'configDir' | 'stateDir'>;
  /** Whose GridManager this is; absent: a command, which looks at the site beside it. */
  readonly manager?: string;
  /** How far the agent's queue is now; of a GridManager alone. */
  readonly mark?: () => Promise<QueueMark>;
  /** PREPARE answers although large content is on its way still; told of that, and how far it is. */
  readonly onSending?: (all: readonly Sending[]) => void;
  /** The same of large results; with it a fetch does not wait for them. */
  readonly onComing?: (all: readonly Sending[]) => void;
  /** Told of the site and its connection; what it answers is called before that is closed. */
  readonly onOpen?: (site: JobManagerSite, transport: Transport) => () => void;
}

/** The way to a configured site that has a machine of its own. */
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

/** What a site sweeps, as the settings have it now. */
export function siteCares(
  settings: Pick<Settings, 'gridmanager.commit_timeout' | 'cache.site_keep_for' | 'cache.site_size'>,
): SiteCares {
  return {
    commitWithin: settings['gridmanager.commit_timeout'],
    cacheFor: settings['cache.site_keep_for'],
    cacheSize: settings['cache.site_size'],
  };
}

/** So long the others of a batch wait for large content and large results, milliseconds. */
const CONTENT_MS = 1000;

/**
 * Where the agent's directory is there. Two sites of one home (a front machine and its cluster) must not take each other's
 * events, nor may the GridManagers of two credentials at one site.
 */
function scratchOf(
  record: SiteRecord,
  identity: string | undefined,
): { readonly scratch: string; readonly ours: number } {
  const site = `${(record.scratch ?? '~/.gryphus').replace(/\/+$/, '')}/${record.name}`;
  if (identity === undefined || !identity.includes('+')) return { scratch: site, ours: 1 };
  return { scratch: `${site}/+${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`, ours: 2 };
}

/** The configured site as the life of a job knows it; closing it closes its connection. */
export async function openSite(record: SiteRecord, options: OpenSiteOptions): Promise<JobManagerSite> {
  if (record.target.kind === 'gram') return await openGram(record, record.target, options);
  const { agent, identity, prompt, paths, cares, onOpen, mark, onSending, onComing } = options;
  const transport = await transportTo(record, { prompt, paths });
  const site = openJobManagerSite({
    name: record.name,
    agentId: agent,
    transport,
    backend: record.batch,
    options: {
      ...(record.queue === undefined ? {} : { queue: record.queue }),
      ...(record.prelude === undefined ? {} : { prelude: record.prelude }),
      ...scratchOf(record, identity),
      // As HTCondor, which asks a job of the scheduler universe to end and leaves it its time: a DAG has a final node.
      ...(record === SCHEDULER_SITE ? { killAfter: Number.POSITIVE_INFINITY, giveUp: 1000 } : {}),
      // Plain processes are no batch system that could be asked too often.
      ...(record.batch === 'fork'
        ? {}
        : { lookMin: record.limits.pollMin * 1000, lookMax: record.limits.pollMax * 1000 }),
      ...cares,
      ...(mark === undefined ? {} : { mark }),
      ...(onSending === undefined ? {} : { onSending, contentPatience: CONTENT_MS }),
      ...(onComing === undefined ? {} : { onComing, resultsPatience: CONTENT_MS }),
      ...(record.limits.running === undefined ? {} : { slots: record.limits.running }),
    },
  });
  const closeSite = site.close.bind(site);
  const ended = onOpen?.(site, transport);
  site.close = async () => {
    ended?.();
    await closeSite();
    await transport.close();
  };
  return site;
}
