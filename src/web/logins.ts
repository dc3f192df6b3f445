import { randomUUID } from 'node:crypto';
import { GryphusError } from '../errors.ts';
import type { AskUser, Gryphus } from '../index.ts';
import { deferred } from '../util/deferred.ts';

/** How long a question waits for its answer; milliseconds. */
const PATIENCE_MS = 5 * 60_000;

/** What a log-in tells the page, in this order: questions, then its end. */
export type LoginMessage =
  | { readonly ask: string; readonly text: string; readonly echo: boolean }
  | { readonly withdrawn: string }
  | { readonly done: true }
  | { readonly error: string; readonly suggestions: readonly string[] };

/** Log-ins to sites with the questions answered in the page. Answers are passed on and never kept. */
export class Logins {
  readonly #gryphus: Gryphus;
  readonly #open = new Map<string, (answer: string | undefined) => void>();

  constructor(gryphus: Gryphus) {
    this.#gryphus = gryphus;
  }

  /** Logs in to the site; `say` is called with each message. Resolves at the end, whatever it is. */
  async run(site: string, say: (message: LoginMessage) => void, signal: AbortSignal): Promise<void> {
    const ask: AskUser = async ({ text, echo }, withdrawn) => {
      const id = randomUUID();
      const answer = deferred<string | undefined>();
      const give = () => answer.resolve(undefined);
      const late = setTimeout(give, PATIENCE_MS);
      // Nobody is there to be asked any more.
      if (signal.aborted) give();
      signal.addEventListener('abort', give, { once: true });
      withdrawn?.addEventListener('abort', give, { once: true });
      this.#open.set(id, answer.resolve);
      say({ ask: id, text, echo });
      try {
        return await answer.promise;
      } finally {
        clearTimeout(late);
        signal.removeEventListener('abort', give);
        this.#open.delete(id);
        if (withdrawn?.aborted) say({ withdrawn: id });
      }
    };
    try {
      await this.#gryphus.login(site, ask);
      say({ done: true });
    } catch (thrown) {
      const error = thrown instanceof GryphusError ? thrown : new GryphusError('internal', String(thrown));
      say({ error: error.message, suggestions: error.suggestions });
    }
  }

  answer(id: string, text: string | undefined): void {
    const give = this.#open.get(id);
    if (!give) throw new GryphusError('not-found', 'This question is no longer open.');
    give(text);
  }
}
