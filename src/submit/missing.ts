import { GryphusError } from '../errors.ts';
import { badInput, type SourcePlace } from './fault.ts';
import { directoryWords } from './directory-words.ts';
import type { SubmitWorld } from './world.ts';

/** How many are shown; how many of one line of the description if there are more; how many jobs are examined. */
const MOST_SHOWN = 20;
const MOST_OF_A_LINE = 3;
export const MOST_LOOKED_AT = 10_000;

const INPUTS = 'Names are relative to initialdir. skip_filechecks = true submits without this check.';

interface Said {
  readonly place: SourcePlace;
  /** What is wrong, of the names that it is wrong with. */
  readonly text: (names: string) => string;
  readonly names: Set<string>;
}

/** Missing files and directories of a cluster's jobs, collected to be reported together. */
export class Missing {
  readonly #said = new Map<string, Said>();
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

  addInput(place: SourcePlace, text: string): void {
    this.#inputs = true;
    this.#add(text, place, text, () => text);
  }

  /** `name`: the file that a command names in `directory`, or the directory itself. */
  addDirectory(place: SourcePlace, command: string, name: string, directory: string): void {
    if (this.#directories.size < MOST_LOOKED_AT) this.#directories.add(directory);
    this.#add(`${command} ${directory}`, place, name, (names) => noDirectory(command, names, directory));
  }

  get any(): boolean {
    return this.#said.size > 0;
  }

  /** One line for each, and the remedy. */
  error(): GryphusError {
    const all = [...this.#said.values()].sort((a, b) => a.place.line - b.place.line);
    const lines = all.length > MOST_SHOWN ? someOfEach(all) : all.map(lineOf);
    const more = lines.length - MOST_SHOWN;
    const shown = more > 1 ? [...lines.slice(0, MOST_SHOWN), `… and more`] : lines;
    return new GryphusError('bad-input', shown.join('\n'), {
      suggestions: [
        ...(this.#directories.size > 0 ? [`mkdir -p ${directoryWords([...this.#directories])}`] : []),
        ...(this.#inputs ? [INPUTS] : []),
      ],
    });
  }

  #add(what: string, place: SourcePlace, name: string, text: Said['text']): void {
    const key = `${place.line} ${what}`;
    const said = this.#said.get(key);
    if (said) said.names.add(name);
    else if (this.#said.size < MOST_LOOKED_AT) this.#said.set(key, { place, text, names: new Set([name]) });
  }
}

/** What is said of files whose directory is missing. */
export function noDirectory(command: string, names: string, directory: string): string {
  return `${command} = ${names}: there is no directory ${directory}`;
}

function lineOf({ place, text, names: { size }, names: [first = ''] }: Said): string {
  return badInput(place, text(size === 1 ? first : `${first} and ${size - 1} more`)).message;
}

/** The first few of each line of the description, and how many more there are. */
function someOfEach(all: readonly Said[]): string[] {
  const byLine = new Map<number, Said[]>();
  for (const one of all) byLine.set(one.place.line, [...(byLine.get(one.place.line) ?? []), one]);
  return [...byLine.values()].flatMap((of) => {
    if (of.length <= MOST_OF_A_LINE + 1) return of.map(lineOf);
    const more = `… and ${of.length - MOST_OF_A_LINE} more of that line`;
    return [...of.slice(0, MOST_OF_A_LINE).map(lineOf), more];
  });
}
