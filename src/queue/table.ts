import type * as z from 'zod';
import type { Kv } from './api.ts';

export interface Row<T> {
  readonly key: string;
  readonly value: T;
}

/**
 * One namespace of the queue's small values, as JSON. A value that is not what the schema says counts as absent: what is
 * kept there can be learned or asked again, and no reader fails because of it.
 */
export class Table<S extends z.ZodType> {
  readonly #name: string;
  readonly #schema: S;

  constructor(name: string, schema: S) {
    this.#name = name;
    this.#schema = schema;
  }

  async get(kv: Pick<Kv, 'get'>, key: string): Promise<z.infer<S> | undefined> {
    return (await this.versioned(kv, key)).value;
  }

  /** `version`: for `set`; 0 if there is no such row. */
  async versioned(
    kv: Pick<Kv, 'get'>,
    key: string,
  ): Promise<{ readonly value: z.infer<S> | undefined; readonly version: number }> {
    const entry = await kv.get(this.#name, key);
    return { value: entry && this.#read(entry.value), version: entry?.version ?? 0 };
  }

  async list(kv: Pick<Kv, 'list'>): Promise<readonly Row<z.infer<S>>[]> {
    return (await kv.list(this.#name)).flatMap(({ key, value: text }) => {
      const value = this.#read(text);
      return value === undefined ? [] : [{ key, value }];
    });
  }

  /** With `ifVersion`, false if the row has another version. */
  async set(kv: Pick<Kv, 'set'>, key: string, value: z.infer<S>, ifVersion?: number): Promise<boolean> {
    return (await kv.set(this.#name, key, JSON.stringify(value), ifVersion)) !== undefined;
  }

  async delete(kv: Pick<Kv, 'delete'>, key: string): Promise<void> {
    await kv.delete(this.#name, key);
  }

  #read(text: string): z.infer<S> | undefined {
    try {
      return this.#schema.safeParse(JSON.parse(text)).data;
    } catch {
      return undefined;
    }
  }
}
