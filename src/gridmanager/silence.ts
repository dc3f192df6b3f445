import { quoted } from '../job/values.ts';
import type { Change } from '../queue/api.ts';
import { commitChanges, type SiteContext } from './context.ts';
import { AT_SITE } from './report.ts';

const ANSWERING = AT_SITE.filter((state) => !state.startsWith('unknown'));

/**
 * The site does not answer: its jobs become *unknown*, which is shown to the user, but they never count as failed
 * (docs/ARCHITECTURE.md, invariant 5).
 */
export async function markSilent(ctx: SiteContext): Promise<void> {
  let changes: Change[] = [];
  for await (const job of ctx.queue.query({ manager: ctx.manager, site: ctx.record.name, states: ANSWERING })) {
    changes.push({
      id: job.id,
      from: job.state,
      attempt: job.attempt,
      event: 'silent',
      set: { GridJobStatus: quoted('UNKNOWN'), GridResourceUnavailableTime: String(Math.floor(ctx.now() / 1000)) },
    });
    if (changes.length >= 1000) {
      await commitChanges(ctx, changes);
      changes = [];
    }
  }
  await commitChanges(ctx, changes);
}
