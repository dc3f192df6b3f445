import type { Paths } from '../config/paths.ts';
import { loadSites, type SiteRecord } from '../config/sites.ts';
import { asError, GryphusError } from '../errors.ts';
import { managerIdentity } from '../job/identity.ts';
import { openSite } from '../open-site/open-site.ts';
import type { Queue } from '../queue/api.ts';
import type { AuditableSite, OtherAgent, SiteAudit, SitePast } from '../site/audit.ts';
import type { Prompt } from '../transport/prompt.ts';
import { counted } from '../util/plain-text.ts';
import type { RecoverRequest } from './recovery-types.ts';

/** The named sites, or all. Rejects with 'site-unknown'. */
export async function sitesOf(paths: Paths, { sites }: RecoverRequest): Promise<readonly SiteRecord[]> {
  const known = await loadSites(paths);
  const names = sites.length > 0 ? sites : [...known.keys()];
  return names.map((name) => {
    const record = known.get(name);
    if (record !== undefined && record.batch !== 'pool' && record.target.kind !== 'gram') return record;
    throw new GryphusError('site-unknown', `There is no site '${name}' from which jobs can be recovered.`, {
      suggestions: ['Add it, under the name that it had: gryphus site add NAME URL', 'gryphus site list'],
    });
  });
}

/** What one of the agent's identities has at a site. */
export interface Place {
  readonly record: SiteRecord;
  readonly identity: string;
  readonly site: AuditableSite;
  readonly there: SiteAudit;
  readonly past: SitePast;
}

/** Opens the agent's places at all sites. Those that do not answer are reported and left out. */
export class Places {
  readonly #paths: Paths;
  readonly #owner: string;
  readonly #sites: readonly SiteRecord[];
  readonly #prompt: Prompt;
  readonly #report: (site: string, error: Error) => void;
  readonly #failed = new Set<string>();
  #open: AuditableSite[] = [];

  constructor(
    paths: Paths,
    owner: string,
    sites: readonly SiteRecord[],
    prompt: Prompt,
    report: (site: string, error: Error) => void,
  ) {
    this.#paths = paths;
    this.#owner = owner;
    this.#sites = sites;
    this.#prompt = prompt;
    this.#report = report;
  }

  /** `queue`: serves the agent from now on, and the sites are told. */
  async holdings(agent: string, queue?: Queue): Promise<readonly Place[]> {
    await this.close();
    const places: Place[] = [];
    for (const record of this.#sites) {
      if (this.#failed.has(record.name)) continue;
      try {
        const identities = new Set([
          managerIdentity(this.#owner, undefined),
          managerIdentity(this.#owner, record.credential),
        ]);
        for (const identity of identities) places.push(await this.#look(record, identity, agent, queue));
      } catch (thrown) {
        this.#failed.add(record.name);
        this.#report(record.name, asError(thrown));
      }
    }
    return places;
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#open.map((site) => site.close()));
    this.#open = [];
  }

  async #look(record: SiteRecord, identity: string, agent: string, queue: Queue | undefined): Promise<Place> {
    const site = await openSite(record, {
      agent,
      identity,
      prompt: this.#prompt,
      paths: this.#paths,
      ...(queue && { holder: queue.holder }),
    });
    this.#open.push(site);
    const past = (await site.past?.()) ?? { epoch: 0, cluster: 0 };
    return { record, identity, site, there: await site.audit(), past };
  }
}

/** The agent that the sites hold something of, if there is only one. */
export async function soleAgent(queue: Queue, places: Places): Promise<string> {
  if ((await queue.mark()).cluster > 0) return queue.agent;
  const others = new Map<string, OtherAgent & { readonly sites: readonly string[] }>();
  for (const { record, there } of await places.holdings(queue.agent)) {
    // A recovery was interrupted right after it had taken the agent over.
    if (there.records.length > 0) return queue.agent;
    for (const other of there.others) {
      const known = others.get(other.agent);
      others.set(other.agent, {
        agent: other.agent,
        attempts: (known?.attempts ?? 0) + other.attempts,
        ended: (known?.ended ?? 0) + other.ended,
        oldest: Math.min(known?.oldest ?? Number.POSITIVE_INFINITY, other.oldest),
        newest: Math.max(known?.newest ?? 0, other.newest),
        sites: [...new Set([...(known?.sites ?? []), record.name])],
      });
    }
  }
  const [only, ...more] = others.values();
  if (only === undefined) {
    throw new GryphusError('not-found', 'These sites hold nothing of another agent of yours.', {
      suggestions: [
        'Their names and `scratch` must be those that the lost agent knew, because its directories there are named by them.',
      ],
    });
  }
  if (more.length === 0) return only.agent;
  const lines = [only, ...more].map(
    ({ agent, attempts, newest, sites }) =>
      `${agent} (${counted(attempts, 'job')} at ${sites.join(', ')}, the last of ${new Date(newest * 1000).toISOString()})`,
  );
  throw new GryphusError('conflict', `The sites hold jobs of several agents: ${lines.join('; ')}.`, {
    suggestions: [`gryphus recover --agent ${only.agent}`],
  });
}
