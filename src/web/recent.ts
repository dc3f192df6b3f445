/** Answers that are good for a while, asked for once however many want them. */
export class Recent {
  readonly #answers = new Map<string, { readonly until: number; readonly answer: Promise<unknown> }>();

  /** The answer that `ask` gave at most `forMs` milliseconds ago, or gives now. `key` stands for one kind of answer. */
  get<T>(key: string, forMs: number, ask: () => Promise<T>, now = Date.now()): Promise<T> {
    const known = this.#answers.get(key);
    if (known && known.until > now) return known.answer as Promise<T>;
    const answer = ask();
    this.#answers.set(key, { until: now + forMs, answer });
    // An error is not kept.
    answer.catch(() => this.#answers.delete(key));
    return answer;
  }

  /** The next question is asked anew. */
  forget(key: string): void {
    this.#answers.delete(key);
  }
}
