/**
 * Work by name that goes on once at a time: whoever wants it while it runs has the end of that run. A queue gives an item
 * once more to a process that did not say in time that it has it.
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
