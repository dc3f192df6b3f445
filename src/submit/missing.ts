import { GryphusError } from '../errors.ts';
import { shellQuote } from '../util/shell-quote.ts';
import { badInput, type Place } from './fault.ts';
import type { SubmitWorld } from './world.ts';

/** How many are shown, and how many jobs are examined once something is missing. */
const MOST_SHOWN = 20;
export const MOST_LOOKED_AT = 10_000;

const INPUTS = 'Names are relative to initialdir. skip_filechecks = true submits without this check.';

/** Missing files and directories of a cluster's jobs, collected to be reported together. */
export class Missing {
  readonly #said = new Map<string, { readonly line: number; readonly text: string }>();
  readonly #directories = new Set<string>();
  readonly #world: SubmitWorld;
  /** Directories checked already, since jobs share them. */
  readonly #known = new Map<string, boolean>();
  #inputs = false;

  constructor(world: SubmitWorld) {
    this.#world = world;
  }

  isDirectory(path: string): boolean {
    const known = this.#known.get(path) ?? this.#world.look(path)?.directory === true;
    this.#known.set(path, known);
    return known;
  }

  addInput(place: Place, text: string): void {
    this.#inputs = true;
    this.#add(place, text);
  }

  /** `text`: what is wrong; `path`: the directory to create. */
  addDirectory(place: Place, text: string, path: string): void {
    this.#directories.add(path);
    this.#add(place, text);
  }

  get any(): boolean {
    return this.#said.size > 0;
  }

  /** One line for each, and the remedy. */
  error(): GryphusError {
    const all = [...this.#said.values()].sort((a, b) => a.line - b.line).map(({ text }) => text);
    const more = all.length - MOST_SHOWN;
    const lines = [...all.slice(0, MOST_SHOWN), ...(more > 0 ? [`… and ${more} more`] : [])];
    const directories = [...this.#directories].slice(0, MOST_SHOWN).map(shellQuote);
    return new GryphusError('bad-input', lines.join('\n'), {
      suggestions: [
        ...(directories.length > 0 ? [`mkdir -p ${directories.join(' ')}`] : []),
        ...(this.#inputs ? [INPUTS] : []),
      ],
    });
  }

  #add(place: Place, text: string): void {
    const key = `${place.line} ${text}`;
    if (this.#said.has(key) || this.#said.size >= MOST_LOOKED_AT) return;
    this.#said.set(key, { line: place.line, text: badInput(place, text).message });
  }
}
