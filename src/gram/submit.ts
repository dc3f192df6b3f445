import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import { blobsOf, unfit } from '../site/spec-lines.ts';
import type { AttemptSpec, Outcome, Outcomes, Refusal } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import { cancel } from './cancel.ts';
import type { GramContext } from './context.ts';
import { GRAM_ERROR } from './errors.ts';
import { inParallel } from './in-parallel.ts';
import { numberOf, STATE } from './protocol.ts';
import type { GramRecord } from './store.ts';

const OK: Outcome = { ok: true };
const TOO_SHORT = 'GRAM refuses jobs whose proxy expires within ten minutes: renew it, see gryphus cred';

/** Snapshots the inputs and asks GRAM for each job, which it then holds uncommitted. */
export async function prepare(ctx: GramContext, specs: readonly AttemptSpec[]): Promise<Outcomes> {
  crashPoint('jm.before-prepare');
  const outcomes = new Map<AttemptKey, Outcome>();
  await inParallel(specs, async (spec) => {
    outcomes.set(spec.key, await prepareOne(ctx, spec));
  });
  crashPoint('jm.after-prepare');
  return outcomes;
}

async function prepareOne(ctx: GramContext, spec: AttemptSpec): Promise<Outcome> {
  const { store, attempts, conversation, credentials } = ctx;
  const found = store.get(spec.key);
  if (found && found.phase !== 'new' && found.phase !== 'lost') return OK;
  const problem = unfit(spec);
  if (problem !== undefined) return refused('never', problem);
  try {
    const proxy = spec.proxy ?? credentials.newestName ?? '';
    credentials.get(proxy);
    const origin = await ctx.ready(proxy);
    attempts.drop(spec.key);
    const record = store.begin(spec, proxy, found?.losses ?? 0);
    for (const blob of blobsOf(spec)) await store.keep(blob);
    const fresh = store.save({ ...record, origin });
    const asked = await conversation.ask(fresh);
    if (asked.ok) {
      store.save({ ...fresh, phase: 'asked', contact: asked.contact });
      return OK;
    }
    store.remove(spec.key);
    if (asked.code === GRAM_ERROR.proxyExpired) return refused('later', TOO_SHORT);
    return refused('never', `GRAM refused the job: ${asked.message}.`);
  } catch (thrown) {
    const refusal = refusalOf(thrown);
    if (refusal === undefined) throw thrown;
    store.remove(spec.key);
    return { ok: false, refusal };
  }
}

/** What GSI or the gatekeeper refuses once will be refused again, so the job is held with their message. */
function refusalOf(thrown: unknown): Refusal | undefined {
  if (!(thrown instanceof GryphusError)) return undefined;
  const { code, message, suggestions } = thrown;
  const text = [message, ...suggestions].join(' ');
  if (code === 'input-missing' || code === 'disk-full') return { kind: 'never', code, message: text };
  if (code === 'login-refused' || code === 'site-refused' || code === 'credential-invalid') {
    return { kind: 'never', code: 'site-refused', message: text };
  }
  return undefined;
}

function refused(kind: Refusal['kind'], message: string): Outcome {
  return { ok: false, refusal: { kind, code: 'site-refused', message } };
}

const GONE: Outcome = {
  ok: false,
  refusal: { kind: 'gone', code: 'unknown-key', message: 'the site does not know the attempt (any more)' },
};

const BUSY: Outcome = {
  ok: false,
  refusal: { kind: 'later', code: 'site-busy', message: 'GRAM has not yet released a job that was not committed' },
};

/** The commit of GRAM's two phases: after it, each job starts once. */
export async function commit(ctx: GramContext, keys: readonly AttemptKey[]): Promise<Outcomes> {
  crashPoint('jm.before-commit');
  const outcomes = new Map<AttemptKey, Outcome>();
  await inParallel(keys, async (key) => {
    outcomes.set(key, await commitOne(ctx, key));
  });
  crashPoint('jm.after-commit');
  return outcomes;
}

async function commitOne(ctx: GramContext, key: AttemptKey): Promise<Outcome> {
  const { store, attempts, conversation, ready } = ctx;
  const found = store.get(key);
  if (found?.contact === undefined || found.phase === 'new' || found.phase === 'lost') return GONE;
  const done: Outcome = { ok: true, batchId: found.contact };
  if (found.phase === 'committed') return done;
  await ready(found.proxy);
  if (found.phase === 'committing' && (await hasBegun(ctx, found))) return done;
  const record = store.save({ ...found, phase: 'committing' });
  const answer = await conversation.commit(record);
  // GRAM waited too long for the commit and dropped the job; nothing of it has started.
  const late = answer.is === 'answer' && numberOf(answer.message, 'job-failure-code') === GRAM_ERROR.commitTimedOut;
  if (answer.is === 'gone' || late) {
    // A restarted job manager read the job's state file, and the job has all it needs.
    if (store.get(key)?.taken === true) {
      store.update(key, { phase: 'committed' });
      return done;
    }
    // A job manager restarted before the commit forgets where the results go. The job is asked for anew once this one
    // is certain not to start.
    store.update(key, { phase: 'asked' });
    const withdrawn = (await cancel(ctx, [key], false)).get(key);
    return withdrawn?.ok === true ? GONE : BUSY;
  }
  store.update(key, { phase: 'committed' });
  attempts.hear(key, answer.message);
  return done;
}

/** After a crash of ours: whether the commit in progress at the time has arrived. */
async function hasBegun({ store, attempts, conversation }: GramContext, found: GramRecord): Promise<boolean> {
  const answer = await conversation.status(found);
  if (answer.is === 'gone') return false;
  const state = numberOf(answer.message, 'status');
  if (state === STATE.unsubmitted || numberOf(answer.message, 'job-failure-code') === GRAM_ERROR.commitTimedOut)
    return false;
  const record = store.update(found.key, { phase: 'committed' });
  // A restarted job manager waits for a commit of its own.
  if (record && record.contact !== found.contact) await conversation.commit(record);
  attempts.hear(found.key, answer.message);
  return true;
}
