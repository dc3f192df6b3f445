import { readFileSync } from 'node:fs';
import { type IdleSource, LastChange, type Reading } from './source.ts';

/** The interrupts of keyboards, mice and touchpads; those of USB devices cannot be told from a disk's. */
const INPUT = /\b(i8042|keyboard|mouse|i2c[_-]hid\S*|ELAN\w*|SYNA\w*|atkbd|psmouse)\b/i;

/** `/proc/interrupts`: the sum of the counts of each line of an input device, by the line's name. */
export function parseInterrupts(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, rest] = /^\s*(\w+):\s+(.*)$/.exec(line) ?? [];
    if (name === undefined || rest === undefined || !INPUT.test(rest)) continue;
    const numbers = /^(?:\d+\s+)+/.exec(`${rest} `)?.[0].trim().split(/\s+/) ?? [];
    counts.set(
      name,
      numbers.reduce((sum, one) => sum + Number(one), 0),
    );
  }
  return counts;
}

/** How long a file that lists no input device is not read again, in seconds: the kernel makes it anew each time. */
const REST = 30;

/** Interrupts of keyboards and mice, as HTCondor's own look at i8042: only that they happened is seen. */
export class Interrupts implements IdleSource {
  readonly name = 'interrupts';
  readonly #file: string;
  readonly #changes = new LastChange<string>();
  #last: number | undefined;
  #blindAt: number | undefined;

  constructor(file = '/proc/interrupts') {
    this.#file = file;
  }

  look(at: number): Reading {
    const none = { sees: false, note: `${this.#file} lists no keyboard or mouse` };
    if (this.#blindAt !== undefined && at >= this.#blindAt && at - this.#blindAt < REST) return none;
    let text: string;
    try {
      text = readFileSync(this.#file, 'latin1');
    } catch {
      return { sees: false, note: `${this.#file} cannot be read` };
    }
    const counts = parseInterrupts(text);
    this.#blindAt = counts.size === 0 ? at : undefined;
    if (counts.size === 0) return none;
    for (const [name, count] of counts) {
      const changed = this.#changes.note(name, count, at);
      if (changed !== undefined) this.#last = Math.max(this.#last ?? changed, changed);
    }
    const idle = this.#last === undefined ? undefined : at - this.#last;
    return { sees: true, idle, console: idle, note: `${counts.size} of keyboards and mice` };
  }
}
