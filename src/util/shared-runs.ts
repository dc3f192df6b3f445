/**
 * Named work of which one run goes on at a time: a caller that wants it meanwhile gets the result of that run. Needed
 * because a queue repeats an item to a process that did not confirm it in time.
 */
export class SharedRuns<T> {
  readonly #running = new Map<string, Promise<T>>();

  run(name: string, work: () => Promise<T>): Promise<T> {
    return this.#running.get(name) ?? this.#start(name, work);
  }

  #start(name: string, work: () => Promise<T>): Promise<T> {
    const started = work().finally(() => this.#running.delete(name));
    this.#running.set(name, started);
    return started;
  }
}
