/** Does something at once when it is first wanted; what is wanted within a moment after that is done once, at its end. */
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

  /** What is wanted still is not done any more. */
  end(): void {
    clearTimeout(this.#moment);
    this.#moment = undefined;
    this.#wanted = false;
  }
}
