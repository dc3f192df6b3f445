import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { percentDecode } from './escape.ts';
import { batches, checkComplete, refuse, type SiteContext, unwritten, words } from './site-context.ts';

/** Submits in one request: short enough that a look at the queue need not wait long for its turn. */
const BATCH = 128;
/** Milliseconds for one submit command that the site bounds at 60 s, and then some. */
const LIMIT = 180_000;

/**
 * COMMIT: the site writes its promise down and submits. A submit command whose answer is unclear keeps the promise:
 * the poll finds the job by its tag, or buries that submission, and the attempt is committed again.
 */
export async function commit(site: SiteContext, keys: readonly AttemptKey[]): Promise<Outcomes> {
  const outcomes = new Map<AttemptKey, Outcome>();
  crashPoint('jm.before-commit');
  for (const batch of batches(keys, BATCH)) {
    const again = await commitBatch(
      site,
      batch.map((key) => [key, wanted(site, key)] as const),
      outcomes,
    );
    if (again.length > 0) await commitBatch(site, again, outcomes);
  }
  crashPoint('jm.after-commit');
  checkComplete(site.name, keys, outcomes);
  return outcomes;
}

/** The next submission where nothing of the last can start; 0: the present one, or the first. */
function wanted(site: SiteContext, key: AttemptKey): number {
  const entry = site.view.get(key);
  if (entry === undefined || entry.submission === 0) return 0;
  return entry.buried !== undefined || refusalOf(site, entry.refused) !== undefined ? entry.submission + 1 : 0;
}

type Wish = readonly [key: AttemptKey, submission: number];

/** Those that must be asked for again under the next number. */
async function commitBatch(
  site: SiteContext,
  wishes: readonly Wish[],
  outcomes: Map<AttemptKey, Outcome>,
): Promise<Wish[]> {
  const answer = await site.session.exchange('commit', [words(wishes.map(([key, n]) => `${key}:${n}`))], [], LIMIT);
  const again: Wish[] = [];
  for (const { kind, rest } of answer.lines) {
    const [name = '', number = '', ...more] = rest.split(' ');
    const key = name as AttemptKey;
    const n = Number(number);
    switch (kind) {
      case 'sent': {
        const batchId = site.backend.idOf(more.join(' '));
        site.view.submitted(key, n, batchId, site.now());
        outcomes.set(key, { ok: true, ...(batchId === undefined ? {} : { batchId }) });
        break;
      }
      case 'refused':
      case 'was-refused': {
        const said = { status: Number(more[0]), words: percentDecode(more[1] ?? '') };
        const refusal = refusalOf(site, said);
        site.view.refused(key, n, said.status, said.words, site.now());
        if (refusal === undefined) outcomes.set(key, { ok: true });
        else if (kind === 'refused') outcomes.set(key, { ok: false, refusal });
        else again.push([key, n + 1]);
        break;
      }
      case 'have': {
        const [flags, ...answered] = more;
        const batchId = site.backend.idOf(answered.join(' '));
        site.view.submitted(key, n, batchId, site.now());
        if (flags === 'buried') again.push([key, n + 1]);
        else outcomes.set(key, { ok: true, ...(batchId === undefined ? {} : { batchId }) });
        break;
      }
      case 'taken':
        // It started after all.
        site.view.submitted(key, n, undefined, site.now());
        site.listAgain();
        outcomes.set(key, { ok: true });
        break;
      case 'gone':
        site.view.forget(key);
        outcomes.set(
          key,
          refuse('gone', 'unknown-key', `${site.name} has no record of ${key}; it may have been swept.`),
        );
        break;
      case 'withdrawn':
        outcomes.set(key, refuse('gone', 'unknown-key', `${key} was cancelled at ${site.name}.`));
        break;
      case 'failed':
        outcomes.set(key, unwritten(site.name, undefined));
        break;
      default:
        break;
    }
  }
  return again;
}

function refusalOf(site: SiteContext, said: { status: number; words: string } | undefined) {
  if (said === undefined) return undefined;
  const refusal = site.backend.refusalOf(said.status, said.words);
  return refusal === 'unclear' ? undefined : refusal;
}
