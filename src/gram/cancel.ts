import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptKey } from '../job/ids.ts';
import type { Outcome, Outcomes } from '../site/contract.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { GramContext } from './context.ts';
import { GRAM_ERROR } from './errors.ts';
import { inParallel } from './in-parallel.ts';
import { isOver } from './classify.ts';
import { numberOf, STATE } from './protocol.ts';
import { isPromised } from './store.ts';

/** How long to wait for GRAM to end a job, in milliseconds, before leaving it to the next round. */
const PATIENCE_MS = 60_000;
const LOOK_MS = 250;
/** How long to wait for a job that is still staging out, in milliseconds, before leaving it to the next round. */
const END_PATIENCE_MS = 15_000;
/** A job that was never committed is denied its program whatever its job manager does, so it is left sooner. */
const UNCOMMITTED_PATIENCE_MS = 3000;

/** Ends jobs and makes GRAM forget them, so that nothing of them stays at the site. */
export async function cancel(
  ctx: GramContext,
  keys: readonly AttemptKey[],
  onlyIfNotStarted: boolean,
): Promise<Outcomes> {
  crashPoint('jm.before-cancel');
  const outcomes = new Map<AttemptKey, Outcome>();
  await inParallel(keys, async (key) => {
    outcomes.set(key, await cancelOne(ctx, key, onlyIfNotStarted));
  });
  crashPoint('jm.after-cancel');
  return outcomes;
}

async function cancelOne(ctx: GramContext, key: AttemptKey, onlyIfNotStarted: boolean): Promise<Outcome> {
  const record = ctx.store.get(key);
  if (record?.contact === undefined) return forgetRecord(ctx, key);
  await ctx.ready(record.proxy);
  const before = await ctx.conversation.status(record);
  if (before.is === 'gone') return forgetRecord(ctx, key);
  const state = numberOf(before.message, 'status');
  ctx.attempts.hear(key, before.message);
  const promised = isPromised(record);
  if (onlyIfNotStarted && promised) return notWithdrawn(state);
  if (!isOver(state) && !(await stopped(ctx, key))) {
    return later('GRAM has not ended the job yet');
  }
  return forgetOne(ctx, key);
}

/** GRAM cannot cancel a job only if it has not started, so a waiting job is left alone. */
function notWithdrawn(state: number): Outcome {
  const waits = state === STATE.pending || state === STATE.unsubmitted || state === STATE.stageIn;
  if (waits) return later('GRAM cannot guarantee that a withdrawn job has not started');
  return { ok: false, refusal: { kind: 'never', code: 'already-started', message: 'it has started' } };
}

async function stopped({ store, conversation, attempts }: GramContext, key: AttemptKey): Promise<boolean> {
  const until = performance.now() + PATIENCE_MS;
  const asked = store.get(key);
  const answer = asked && (await conversation.cancel(asked));
  if (answer === undefined || answer.is === 'gone') return true;
  for (;;) {
    const now = store.get(key);
    const status = now && (await conversation.status(now));
    if (status === undefined || status.is === 'gone') return true;
    attempts.hear(key, status.message);
    if (isOver(numberOf(status.message, 'status'))) return true;
    if (performance.now() > until) return false;
    await delay(LOOK_MS);
  }
}

/** Sends COMMIT_END. */
export async function forget(ctx: GramContext, keys: readonly AttemptKey[]): Promise<Outcomes> {
  crashPoint('jm.before-forget');
  const outcomes = new Map<AttemptKey, Outcome>();
  await inParallel(keys, async (key) => {
    outcomes.set(key, await forgetOne(ctx, key));
  });
  ctx.store.sweep();
  crashPoint('jm.after-forget');
  return outcomes;
}

async function forgetOne(ctx: GramContext, key: AttemptKey): Promise<Outcome> {
  const record = ctx.store.get(key);
  if (record?.contact === undefined) return forgetRecord(ctx, key);
  await ctx.ready(record.proxy);
  // GRAM drops a job that was never committed by itself.
  const uncommitted = record.phase === 'asked';
  const ended = await takesEnd(ctx, key, uncommitted ? UNCOMMITTED_PATIENCE_MS : END_PATIENCE_MS);
  if (ended || uncommitted) return forgetRecord(ctx, key);
  return later('GRAM has not finished with the job yet');
}

/**
 * A job manager reports a job as done while still sending its last file, and refuses COMMIT_END until it has finished.
 */
export async function takesEnd(
  { store, conversation }: GramContext,
  key: AttemptKey,
  patience: number,
): Promise<boolean> {
  const until = performance.now() + patience;
  for (;;) {
    const record = store.get(key);
    const answer = record && (await conversation.end(record));
    if (answer === undefined || answer.is === 'gone') return true;
    if (numberOf(answer.message, 'failure-code') !== GRAM_ERROR.queryDenied) return true;
    if (performance.now() > until) return false;
    await delay(LOOK_MS);
  }
}

function later(message: string): Outcome {
  return { ok: false, refusal: { kind: 'later', code: 'site-busy', message } };
}

function forgetRecord({ store, attempts }: GramContext, key: AttemptKey): Outcome {
  store.remove(key);
  attempts.drop(key);
  return { ok: true };
}
