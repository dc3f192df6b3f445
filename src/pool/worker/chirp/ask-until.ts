import { setTimeout as sleep } from 'node:timers/promises';
import type { Question } from '../../../io-proxy/job-proxy.ts';
import { CHIRP_ERROR, type HomeAnswer, type HomeRequest } from '../../../site/chirp.ts';
import type { Run } from '../run.ts';

/** Asks the home of a run; rejects if it cannot be reached now. */
export type AskHome = (run: Run, request: HomeRequest, bytes?: Uint8Array) => Promise<HomeAnswer>;

/** A request is sent again after this time, in milliseconds. */
const AGAIN_MS = 200;

/** Asks until home answers: while it is away, the job waits, at most as long as its lease. */
export async function askUntil(
  ask: AskHome,
  run: Run,
  request: Question,
  bytes?: Uint8Array,
  /** The result if the lease is over before there is an answer. */
  offline: number = CHIRP_ERROR.offline,
): Promise<HomeAnswer> {
  const until = performance.now() + run.record.lease * 1000;
  for (let again = request.again === true; ; again = true) {
    try {
      return await ask(run, { ...request, again }, bytes);
    } catch {
      if (run.forgotten || performance.now() > until) return { result: offline };
      await sleep(AGAIN_MS);
    }
  }
}
