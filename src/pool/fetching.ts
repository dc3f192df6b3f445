import type { AttemptKey } from '../job/ids.ts';
import type { FetchOutcome, FetchRequest } from '../site/contract.ts';
import type { Attempt } from './attempts.ts';
import type { Desk } from './desk.ts';
import type { DeskWorkers } from './desk-workers.ts';
import { bringHome } from './shadow.ts';

/** So long a fetch waits for a worker that is away before it says "later", milliseconds. */
const RETURN_MS = 20_000;
/** Results that take longer come on while their client, who asks for those of many, is told "later". Milliseconds. */
const PATIENCE_MS = 1_000;

/** The results that are on their way home from workers, each once, whoever asks again. */
export class Fetching {
  readonly #desk: Desk;
  readonly #workers: DeskWorkers;
  readonly #coming = new Map<AttemptKey, Promise<FetchOutcome>>();

  constructor(desk: Desk, workers: DeskWorkers) {
    this.#desk = desk;
    this.#workers = workers;
  }

  async fetch(request: FetchRequest): Promise<FetchOutcome> {
    const attempt = this.#desk.get(request.key);
    if (!attempt) {
      const message = `The pool has nothing of ${request.key}.`;
      return { ok: false, refusal: { kind: 'gone', code: 'unknown-key', message }, missing: [] };
    }
    const how = attempt.ending?.how;
    // What was never placed in a sandbox, or ended with its worker, left nothing to fetch.
    if (how?.kind === 'by-site' && how.cause === 'node-fail') return { ok: true, files: [], lost: how };
    return this.#soon(this.#coming.get(request.key) ?? this.#begin(attempt, request));
  }

  #begin(attempt: Attempt, request: FetchRequest): Promise<FetchOutcome> {
    const coming = this.#bring(attempt, request).finally(() => this.#coming.delete(request.key));
    this.#coming.set(request.key, coming);
    // Whoever asked may have gone away meanwhile.
    coming.catch(() => undefined);
    return coming;
  }

  async #bring(attempt: Attempt, request: FetchRequest): Promise<FetchOutcome> {
    const { burials } = this.#desk;
    const patience = burials.isOrphan(attempt) ? 0 : RETURN_MS;
    const outcome = await bringHome(attempt, request, await this.#workers.whenBack(attempt.worker, patience));
    if (outcome.ok || outcome.refusal.kind !== 'later' || !burials.isOrphan(attempt)) return outcome;
    const { how } = burials.bereave(attempt);
    await new Promise<void>((saved) => this.#desk.whenSaved(saved));
    return how.kind === 'by-site' ? { ok: true, files: [], lost: how } : outcome;
  }

  #soon(coming: Promise<FetchOutcome>): Promise<FetchOutcome> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve(LATER), PATIENCE_MS);
      coming.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }
}

const LATER: FetchOutcome = {
  ok: false,
  refusal: { kind: 'later', code: 'arriving', message: 'The results are on their way.' },
  missing: [],
};
