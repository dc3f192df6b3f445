import { createHash } from 'node:crypto';
import { signDelegation } from '../credentials/delegation.ts';
import type { Source } from '../credentials/sources.ts';
import { loadProxy } from '../credentials/store.ts';
import { GryphusError } from '../errors.ts';
import type { SiteRecord } from '../config/sites.ts';
import type { JobRecord, Queue } from '../queue/api.ts';
import { CREDENTIAL_COPIES } from '../queue/tables.ts';
import type { Site } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { CredentialGate } from './credential-gate.ts';

export type ProxySource = Source & { readonly kind: 'x509-proxy' };

/** A key of CREDENTIAL_COPIES. */
export function copyKey(manager: string, site: string, credential: string): string {
  return [manager, site, credential].join('\t');
}

/** A copy older than this is sent again, because the site deletes copies that no job uses. Milliseconds. */
const TRUSTED_MS = 30 * 60_000;

/** The part of SiteContext that proxies need. */
interface Surroundings {
  readonly manager: string;
  readonly queue: Pick<Queue, 'kv'>;
  readonly record: SiteRecord;
  readonly site: Site;
  readonly gate: CredentialGate;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** The proxies of one site's jobs: delegated before the first job that needs one, and again when ours is renewed. */
export class SiteProxies {
  readonly #there = new Map<string, { readonly version: string; readonly at: number }>();

  /** Delegates the proxy if necessary. Returns its name at the site. */
  async ensure(ctx: Surroundings, source: ProxySource): Promise<string> {
    const { version } = ctx.gate.inspect(source);
    const there = this.#there.get(source.name);
    if (there?.version !== version || Math.abs(ctx.now() - there.at) > TRUSTED_MS) await this.#send(ctx, source);
    return nameThere(source);
  }

  /** Delegates again each proxy of which the site has another version than ours. */
  async refresh(ctx: Surroundings): Promise<void> {
    const mine = copyKey(ctx.manager, ctx.record.name, '');
    for (const { key, value } of await CREDENTIAL_COPIES.list(ctx.queue.kv)) {
      if (!key.startsWith(mine)) continue;
      const { version, file } = value;
      const source: ProxySource = { name: key.slice(mine.length), kind: 'x509-proxy', file };
      const ours = ctx.gate.inspect(source);
      const good = ours.problem === undefined && ours.end !== undefined && ours.end * 1000 > ctx.now();
      if (good && ours.version !== version) await this.#send(ctx, source);
    }
  }

  async #send(ctx: Surroundings, source: ProxySource): Promise<void> {
    const { site, record, manager, queue } = ctx;
    if (!site.delegate) {
      throw new GryphusError('site-refused', `Site ${record.name} accepts no X.509 proxies.`);
    }
    const { version } = ctx.gate.inspect(source);
    crashPoint('gm.before-delegate');
    await site.delegate(nameThere(source), async (request) => {
      const issuer = loadProxy(source.file);
      const now = Math.floor(ctx.now() / 1000);
      // Same end as ours: the site's copy never outlives its issuer.
      return signDelegation(request, issuer, { now, lifetime: Math.max(1, issuer.chain[0].notAfter - now) });
    });
    crashPoint('gm.after-delegate');
    this.#there.set(source.name, { version, at: ctx.now() });
    const key = copyKey(manager, record.name, source.name);
    await CREDENTIAL_COPIES.set(queue.kv, key, { version, file: source.file });
    crashPoint('gm.saved-delegate');
  }
}

/** Safe as a file name, and the same in every process. */
function nameThere({ name }: Source): string {
  return createHash('sha256').update(name).digest('hex').slice(0, 16);
}

/**
 * Jobs that may proceed now, each with the proxy it needs; the others wait until their credential is good, or are held.
 */
export async function admitted(
  ctx: Surroundings,
  jobs: readonly JobRecord[],
): Promise<readonly { readonly job: JobRecord; readonly proxy: ProxySource | undefined }[]> {
  const looked = await Promise.all(jobs.map((job) => ctx.gate.look(job, ctx.record)));
  return jobs.flatMap((job, i) => {
    const found = looked[i];
    return found?.usability.is === 'good' ? [{ job, proxy: found.needs.proxy }] : [];
  });
}
