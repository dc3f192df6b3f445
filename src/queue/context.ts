import { textsOf } from './answers.ts';
import type { Connection } from './redis.ts';

/** State shared by the parts of an open queue. */
export interface QueueContext {
  readonly db: Connection;
  readonly names: NameTable;
  /** Unix milliseconds, a whole number. */
  readonly now: () => number;
}

/** Managers and sites are stored as small numbers. A number never changes its name; '' is 0. */
export class NameTable {
  readonly #db: Connection;
  readonly #numbers = new Map<string, string>([['', '0']]);
  readonly #names = new Map<string, string>([['0', '']]);

  constructor(db: Connection) {
    this.#db = db;
  }

  /** The numbers of these names, assigned now to new names. */
  async numbers(names: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    const unknown = [...new Set(names)].filter((name) => !this.#numbers.has(name));
    if (unknown.length > 0) {
      const given = textsOf(await this.#db.script('intern', unknown));
      for (const [i, name] of unknown.entries()) this.#learn(given[i] ?? '0', name);
    }
    return this.#numbers;
  }

  /** The number of a name; `undefined` if it has none. */
  async known(name: string): Promise<string | undefined> {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = await this.#db.run((redis) => redis.hget(`${this.#db.prefix}names`, name));
    if (number !== null) this.#learn(number, name);
    return number ?? undefined;
  }

  /** Maps numbers to names; contains at least these numbers. */
  async names(numbers: Iterable<string>): Promise<ReadonlyMap<string, string>> {
    for (const number of numbers) {
      if (this.#names.has(number)) continue;
      const all = await this.#db.run((redis) => redis.hgetall(`${this.#db.prefix}ids`));
      for (const [n, name] of Object.entries(all)) this.#learn(n, name);
      break;
    }
    return this.#names;
  }

  #learn(number: string, name: string): void {
    this.#numbers.set(name, number);
    this.#names.set(number, name);
  }
}
