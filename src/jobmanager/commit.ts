import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes, Refusal } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { percentDecode } from '../site/escape.ts';
import { batches, checkComplete, refuse, type JobManagerContext, unwritten, words } from './site-context.ts';

/** Submit commands in one request, few enough that a look at the queue does not wait long for its turn. */
const BATCH = 64;
/** Attempts in one request if similar ones share a submit command. */
const ARRAY_BATCH = 1000;
/** In milliseconds. The site stops a submit command after 60 s, so this leaves ample time. */
const LIMIT = 180_000;

/**
 * COMMIT: the site records its promise and submits. If a submit command's answer is unclear, the promise stands: the
 * poll finds the job by its tag, or fences that submission so that the attempt is committed again.
 */
export async function commit(site: JobManagerContext, keys: readonly AttemptKey[]): Promise<Outcomes> {
  const outcomes = new Map<AttemptKey, Outcome>();
  crashPoint('jm.before-commit');
  for (const batch of batches(keys, site.arrays > ALONE ? ARRAY_BATCH : BATCH)) {
    // A full site is not asked again for each remaining batch.
    const full = [...outcomes.values()].find((outcome) => !outcome.ok && outcome.refusal.code === 'site-full');
    if (full !== undefined) {
      for (const key of batch) outcomes.set(key, full);
      continue;
    }
    let wishes: readonly Wish[] = batch.map((key) => [key, wanted(site, key)]);
    for (let round = 1; wishes.length > 0 && round <= ROUNDS; round++) {
      const { again, refused } = await commitBatch(site, wishes, site.arrays, outcomes);
      for (const group of refused.values()) await divide(site, group, outcomes);
      wishes = again;
    }
  }
  crashPoint('jm.after-commit');
  checkComplete(site.name, keys, outcomes);
  return outcomes;
}
/** A fenced or refused attempt is requested once more under the next number, which is then accepted or refused. */
const ROUNDS = 2;

/**
 * Handles the refusal of a submit command for many attempts. If the site is full, some may still fit: tries
 * half of them at a time until a command succeeds or a single attempt is refused. If the refusal is final, tries one
 * alone: if that succeeds, the site rejects arrays.
 */
async function divide(site: JobManagerContext, group: Group, outcomes: Map<AttemptKey, Outcome>): Promise<void> {
  const { refusal } = group;
  if (group.wishes.length < 2 || (refusal.kind === 'later' && refusal.code !== 'site-full')) return;
  const next = (wishes: readonly Wish[]): Wish[] => wishes.map(([key, n]) => [key, n + 1]);
  if (refusal.kind === 'later') {
    const half = group.wishes.slice(0, Math.ceil(group.wishes.length / 2));
    const { refused } = await commitBatch(site, next(half), site.arrays, outcomes);
    for (const smaller of refused.values()) await divide(site, smaller, outcomes);
    return;
  }
  const [first, ...others] = group.wishes;
  if (first === undefined) return;
  await commitBatch(site, next([first]), ALONE, outcomes);
  const alone = outcomes.get(first[0]);
  if (alone?.ok !== true) {
    // The refusal of a single job is more accurate than that of the array.
    for (const [key] of others) if (alone !== undefined) outcomes.set(key, alone);
    return;
  }
  site.arrays = ALONE;
  for (const batch of batches(next(others), BATCH)) await commitBatch(site, batch, ALONE, outcomes);
}
/** The limit of attempts in one submit command when arrays are not used. */
const ALONE = 1;

/** The next submission if nothing of the last one can start; 0: the present one, or the first. */
function wanted(site: JobManagerContext, key: AttemptKey): number {
  const entry = site.view.get(key);
  if (entry === undefined || entry.submission === 0) return 0;
  return entry.fenced !== undefined || refusalOf(site, entry.refused) !== undefined ? entry.submission + 1 : 0;
}

type Wish = readonly [key: AttemptKey, submission: number];

/** The attempts of one refused submit command. */
interface Group {
  readonly wishes: Wish[];
  readonly refusal: Refusal;
}

interface Committed {
  /** Attempts to request again under the next number. */
  readonly again: Wish[];
  readonly refused: ReadonlyMap<string, Group>;
}

async function commitBatch(
  site: JobManagerContext,
  wishes: readonly Wish[],
  most: number,
  outcomes: Map<AttemptKey, Outcome>,
): Promise<Committed> {
  const body = words(wishes.map(([key, n]) => `${key}:${n}`));
  const answer = await site.session.exchange('commit', [body], [most], LIMIT);
  const again: Wish[] = [];
  const refused = new Map<string, Group>();
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
        const said = { status: Number(more[0]), message: percentDecode(more[1] ?? '') };
        const refusal = refusalOf(site, said);
        site.view.refused(key, n, said.status, said.message, site.now());
        if (refusal === undefined) outcomes.set(key, { ok: true });
        else if (kind === 'was-refused') again.push([key, n + 1]);
        else {
          outcomes.set(key, { ok: false, refusal });
          const group = refused.get(more[2] ?? '-') ?? { wishes: [], refusal };
          if (more[2] !== '-') refused.set(more[2] ?? '-', group);
          group.wishes.push([key, n]);
        }
        break;
      }
      case 'have': {
        const [flags, ...answered] = more;
        const batchId = site.backend.idOf(answered.join(' '));
        site.view.submitted(key, n, batchId, site.now());
        if (flags === 'fenced') again.push([key, n + 1]);
        else outcomes.set(key, { ok: true, ...(batchId === undefined ? {} : { batchId }) });
        break;
      }
      case 'taken':
        // It has started after all.
        site.view.submitted(key, n, undefined, site.now());
        site.listAgain();
        outcomes.set(key, { ok: true });
        break;
      case 'gone':
        site.view.forget(key);
        outcomes.set(
          key,
          refuse('gone', 'unknown-key', `${site.name} has no record of ${key}; it may have been cleaned up.`),
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
  return { again, refused };
}

function refusalOf(site: JobManagerContext, said: { status: number; message: string } | undefined) {
  if (said === undefined) return undefined;
  const refusal = site.backend.refusalOf(said.status, said.message);
  return refusal === 'unclear' ? undefined : refusal;
}
