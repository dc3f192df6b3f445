import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import type { Site } from '../site/contract.ts';

/** Ends an attempt at a site and lets the site forget it. Rejects with 'site-refused'. */
export async function withdraw(site: Pick<Site, 'cancel' | 'forget'>, name: string, key: AttemptKey): Promise<void> {
  for (const act of [site.cancel.bind(site), site.forget.bind(site)]) {
    const outcome = (await act([key])).get(key);
    if (outcome && !outcome.ok) throw new GryphusError('site-refused', `Site ${name}: ${outcome.refusal.message}`);
  }
}
