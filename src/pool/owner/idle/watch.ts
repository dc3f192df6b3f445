import type { IdleSource, Reading } from './source.ts';

/** What all sources together say. Seconds. */
export interface Presence {
  /** Since the last sign of the owner anywhere; `undefined` if nothing can be seen on this machine. */
  readonly keyboard: number | undefined;
  /** The same, at the machine itself. */
  readonly console: number | undefined;
  /** The source of the latest sign. */
  readonly by: string | undefined;
  readonly readings: ReadonlyMap<string, Reading>;
}

/**
 * All sources; the smallest idle time wins. If none of those that see something has seen a sign, the time for which the
 * machine has been watched counts: nobody is ever considered away for longer than we have looked.
 */
export class IdleWatch {
  readonly #sources: readonly IdleSource[];
  /** When watching began, by the clock of `look`. */
  readonly #since: number;

  constructor(sources: readonly IdleSource[], since: number) {
    this.#sources = sources;
    this.#since = since;
  }

  /** `wanted`: the names of the sources that count. */
  look(at: number, wanted?: ReadonlySet<string>): Presence {
    const sources = this.#sources.filter(({ name }) => wanted?.has(name) ?? true);
    const readings = new Map(sources.map((source) => [source.name, source.look(at)]));
    const seeing = [...readings].filter(([, { sees }]) => sees);
    const watched = Math.max(0, at - this.#since);
    const best = (which: 'idle' | 'console') => {
      let least: { readonly name: string; readonly idle: number } | undefined;
      for (const [name, reading] of seeing) {
        const idle = reading[which];
        if (idle !== undefined && (!least || idle < least.idle)) least = { name, idle: Math.max(0, idle) };
      }
      return least;
    };
    const [keyboard, console] = [best('idle'), best('console')];
    const none = seeing.length === 0 ? undefined : watched;
    return { keyboard: keyboard?.idle ?? none, console: console?.idle ?? none, by: keyboard?.name, readings };
  }

  close(): void {
    for (const source of this.#sources) source.close?.();
  }
}
