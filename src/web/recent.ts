/** Answers that are good for a while, asked for once however many want them. */
export class Recent {
  readonly #answers = new Map<string, { readonly until: number; readonly answer: Promise<unknown> }>();

  /** The answer that `ask` gave at most `forMs` milliseconds ago, or gives now. `key` stands for one kind of answer. */
  get<T>(key: string, forMs: number, ask: () => Promise<T>, now = Date.now()): Promise<T> {
    const known = this.#answers.get(key);
    if (known && known.until > now) return known.answer as Promise<T>;
    for (const [old, { until }] of this.#answers) if (until <= now) this.#answers.delete(old);
    const kept = { until: now + forMs, answer: ask() };
    this.#answers.set(key, kept);
    // An error is not kept.
    kept.answer.catch(() => {
      if (this.#answers.get(key) === kept) this.#answers.delete(key);
    });
    return kept.answer;
  }

  /** The next question is asked anew. */
  forget(key: string): void {
    this.#answers.delete(key);
  }
}
