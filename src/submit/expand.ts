import type { SourcePlace } from './fault.ts';
import { badInput } from './fault.ts';
import type { FoundMacro } from './find-macro.ts';
import { findMacro, isFilenameFunction } from './find-macro.ts';
import { callFunction, isRandom, reference } from './macro-functions.ts';
import type { FunctionScope } from './macro-functions.ts';
import type { MacroTable } from './macros.ts';

/** How many characters one expansion may process, and how deeply functions may be nested. */
const MOST_WORK = 2 ** 27;
const MOST_STEPS = 100_000;
const DEEPEST = 60;

export interface ExpanderOptions {
  readonly macros: MacroTable;
  readonly cwd: string;
  env(name: string): string | undefined;
  random(): number;
  complain(message: string): void;
}

function isDollar(func: string, body: string): boolean {
  return func === '' && body.toUpperCase() === 'DOLLAR';
}

/** Expands macros in values; refuses expansions that never end. */
export class Expander implements FunctionScope {
  readonly cwd: string;
  readonly #options: ExpanderOptions;
  #depth = 0;
  /** The place to blame for an expansion that does not end. */
  place: SourcePlace | undefined;
  /** Called when a value was chosen at random and so differs between jobs. */
  onRandom: (() => void) | undefined;

  constructor(options: ExpanderOptions) {
    this.#options = options;
    this.cwd = options.cwd;
  }

  lookup(name: string): string | undefined {
    return this.#options.macros.lookup(name);
  }

  env(name: string): string | undefined {
    return this.#options.env(name);
  }

  random(): number {
    return this.#options.random();
  }

  complain(message: string): void {
    this.#options.complain(message);
  }

  /** Expands all macros, then $(DOLLAR). */
  expand(text: string): string {
    if (!text.includes('$')) return text;
    const expanded = this.#replace(text, (func, body) => !isDollar(func, body));
    return this.#replaceDollars(expanded);
  }

  /**
   * Expands only references to `self`, as when `self = text` is read: `x = $(x) more` thus appends to the old value.
   */
  expandSelf(text: string, self: string): string {
    if (!text.includes('$')) return text;
    const name = self.toLowerCase();
    return this.#replace(text, (func, body) => {
      if (func !== '' && !isFilenameFunction(func)) return false;
      const key = body.toLowerCase();
      return key === name || key.startsWith(`${name}:`);
    });
  }

  #replace(text: string, accept: (func: string, body: string) => boolean): string {
    if (++this.#depth > DEEPEST) throw this.#endless(text);
    // Finished text is set aside, so that each step only copies the rest.
    let done = '';
    let rest = text;
    let work = 0;
    for (let step = 0; ; step++) {
      const found = findMacro(rest, 0, accept);
      if (!found) break;
      const value = this.#value(found);
      done += rest.slice(0, found.firstDollar);
      rest = rest.slice(found.firstDollar, found.start) + value + rest.slice(found.end);
      work += rest.length;
      if (work > MOST_WORK || step > MOST_STEPS) throw this.#endless(rest.slice(0, 40));
    }
    this.#depth--;
    return done + rest;
  }

  #value(found: FoundMacro): string {
    if (found.func === '') return reference(found.body, this);
    if (isRandom(found.func)) this.onRandom?.();
    return callFunction(found.func, found.body, this);
  }

  #replaceDollars(text: string): string {
    let value = text;
    let from = 0;
    for (;;) {
      const found = findMacro(value, from, isDollar);
      if (!found) return value;
      value = `${value.slice(0, found.start)}$${value.slice(found.end)}`;
      from = found.firstDollar;
    }
  }

  #endless(text: string): Error {
    this.#depth = 0;
    return badInput(this.place, `the macro in '${text}' is endless: it refers to itself through others`, [
      'Look for a cycle in the definitions, as in a = $(b) and b = $(a).',
    ]);
  }
}
