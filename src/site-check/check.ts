import type { SiteRecord } from '../config/sites.ts';
import type { AuditableSite } from '../site/audit.ts';
import type { SiteFacts } from '../site/contract.ts';
import { type CheckStep, REACHING, until } from './steps.ts';
import { trial } from './trial.ts';

export interface OpenCheck {
  readonly agent: string;
  /** Added to the step of the log-in. */
  readonly how?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The check of a site that has been reached, from the first step on: home, disk, batch system, a trial job. When
 * `signal` ends it, it takes its job back and rejects with 'interrupted'.
 */
export async function* checkReachedSite(
  record: SiteRecord,
  site: AuditableSite,
  facts: SiteFacts,
  { agent, how = '', signal }: OpenCheck,
): AsyncGenerator<CheckStep> {
  const words = [`${site.name} is configured`, `${facts.host} answers`, 'known', `as ${facts.user}${how}`];
  for (const [i, step] of REACHING.entries()) yield { step, ok: true, message: words[i] ?? '' };
  let well = true;
  for (const { name, ok, message, remedy } of await until(signal, site.test())) {
    well &&= ok;
    yield { step: name, ok, message, ...(remedy === undefined ? {} : { remedy }) };
  }
  if (well) yield await trial(site, record, agent, signal);
}
