import { GryphusError } from '../errors.ts';
import type { AttemptKey } from '../job/ids.ts';
import { blobsOf, unfit } from '../jobmanager/spec.ts';
import type { AttemptSpec, Outcome, Outcomes, Refusal } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { Attempts } from './attempts.ts';
import type { Conversation } from './conversation.ts';
import type { GramCredentials } from './credentials.ts';
import { GRAM_ERROR } from './errors.ts';
import { inParallel } from './in-parallel.ts';
import { numberOf } from './protocol.ts';
import type { GramStore } from './store.ts';

/** What the calls of a GRAM site work with. */
export interface GramContext {
  readonly store: GramStore;
  readonly attempts: Attempts;
  readonly conversation: Conversation;
  readonly credentials: GramCredentials;
  /** Our GASS server is open, and where. */
  readonly ready: () => Promise<string>;
}

const OK: Outcome = { ok: true };

/** Snapshots the inputs and asks GRAM for each job: it holds them uncommitted. */
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
    const origin = await ctx.ready();
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
    const passing = asked.code === GRAM_ERROR.proxyExpired;
    return refused(passing ? 'later' : 'never', `GRAM refused the job: ${asked.message}.`);
  } catch (thrown) {
    const refusal = refusalOf(thrown);
    if (refusal === undefined) throw thrown;
    store.remove(spec.key);
    return { ok: false, refusal };
  }
}

/** What GSI or the gatekeeper refuses will be refused again: the job is held with their words. */
function refusalOf(thrown: unknown): Refusal | undefined {
  if (!(thrown instanceof GryphusError)) return undefined;
  const { code, message, suggestions } = thrown;
  const words = [message, ...suggestions].join(' ');
  if (code === 'input-missing' || code === 'disk-full') return { kind: 'never', code, message: words };
  if (code === 'login-refused' || code === 'site-refused' || code === 'credential-invalid') {
    return { kind: 'never', code: 'site-refused', message: words };
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

/** The commit of GRAM's two phases: from now on each starts, once. */
export async function commit(ctx: GramContext, keys: readonly AttemptKey[]): Promise<Outcomes> {
  crashPoint('jm.before-commit');
  const outcomes = new Map<AttemptKey, Outcome>();
  await inParallel(keys, async (key) => {
    outcomes.set(key, await commitOne(ctx, key));
  });
  crashPoint('jm.after-commit');
  return outcomes;
}

async function commitOne({ store, attempts, conversation, ready }: GramContext, key: AttemptKey): Promise<Outcome> {
  const found = store.get(key);
  if (found?.contact === undefined || found.phase === 'new' || found.phase === 'lost') return GONE;
  const done: Outcome = { ok: true, batchId: found.contact };
  if (found.phase === 'committed') return done;
  await ready();
  const record = store.save({ ...found, phase: 'committing' });
  const answer = await conversation.commit(record);
  // It waited too long for this and was let go: nothing of it has started.
  const late = answer.is === 'answer' && numberOf(answer.message, 'job-failure-code') === GRAM_ERROR.commitTimedOut;
  if (answer.is === 'gone' || late) {
    if (late) await conversation.end(record);
    store.remove(key);
    attempts.drop(key);
    return GONE;
  }
  store.update(key, { phase: 'committed' });
  attempts.hear(key, answer.message);
  return done;
}
