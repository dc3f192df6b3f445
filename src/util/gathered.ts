/** Calls a function at once when it is first wanted; further requests within a moment result in one call at its end. */
export class Gathered {
  readonly #call: () => void;
  readonly #momentMs: number;
  #moment: NodeJS.Timeout | undefined;
  #wanted = false;

  constructor(call: () => void, momentMs: number) {
    this.#call = call;
    this.#momentMs = momentMs;
  }

  want(): void {
    if (this.#moment) {
      this.#wanted = true;
      return;
    }
    this.#wanted = false;
    this.#moment = setTimeout(() => {
      this.#moment = undefined;
      if (this.#wanted) this.want();
    }, this.#momentMs);
    this.#call();
  }

  /** Drops a pending request. */
  end(): void {
    clearTimeout(this.#moment);
    this.#moment = undefined;
    this.#wanted = false;
  }
}
