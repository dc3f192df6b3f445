import { Flags } from '@oclif/core';
import type { ActionResult } from '../index.ts';
import { formatJobId } from '../job/ids.ts';
import type { Out } from './command.ts';

/** How a command prints a list whose items arrive one by one: as one JSON document, or as JSON Lines. */
export const listFlags = {
  json: Flags.boolean({ summary: 'A JSON array.', exclusive: ['jsonl'] }),
  jsonl: Flags.boolean({ summary: 'One JSON object per line, as they arrive.' }),
};

export const actFlag = Flags.boolean({ summary: 'A JSON array: one object per job, with the result.' });

/** The results of an action on jobs, as JSON. */
export function actJson(results: readonly ActionResult[]): string {
  const rows = results.map(({ id, result, message }) => ({ job: formatJobId(id), result, message }));
  return `${JSON.stringify(rows, undefined, 2)}\n`;
}

/** An array whose items are written as they arrive. Only `end` completes it. */
export class JsonList {
  readonly #out: Out;
  readonly #lines: boolean;
  #first = true;

  /** `lines`: JSON Lines instead of an array. */
  constructor(out: Out, lines: boolean) {
    this.#out = out;
    this.#lines = lines;
    if (!lines) out.line('[');
  }

  /** `text`: JSON; for JSON Lines it must be a single line. */
  add(text: string): void {
    if (this.#lines) return this.#out.line(text);
    this.#out.text(this.#first ? text : `,\n${text}`);
    this.#first = false;
  }

  end(): void {
    if (!this.#lines) this.#out.text(this.#first ? ']\n' : '\n]\n');
  }
}
