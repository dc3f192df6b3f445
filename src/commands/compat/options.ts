/** How Slurm's commands begin an error: `sacct: error: …`, `sacct: fatal: …`, not at all; `option`: as getopt(3) does. */
export type Severity = 'error' | 'fatal' | 'bare' | 'option';

/** An error in the words of the command that speaks: its message, as the real one says it, and its exit status. */
export class Refused extends Error {
  readonly status: number;
  readonly severity: Severity;

  constructor(message: string, status = 1, severity: Severity = 'error') {
    super(message);
    this.status = status;
    this.severity = severity;
  }
}

function wrongOption(message: string): Refused {
  return new Refused(message, 1, 'option');
}

/** What was given: the value of each option, by its long name, and the other words. */
export interface Given {
  readonly values: ReadonlyMap<string, string>;
  readonly words: readonly string[];
}

/**
 * Reads words as getopt_long does. `spec`: the options apart by blanks, each `-x|--long`, with `=` if it takes a value
 * (`=?`: only after an equals sign; `=+`: a list, which grows if it is given again). Of other options, the last one counts;
 * one that is not there is refused. `optionsFirst`: the first other word ends them.
 */
export function getopt(spec: string, words: readonly string[], optionsFirst = false): Given {
  const options = spec.split(/\s+/).map(rowOf);
  const values = new Values();
  const rest: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word === '--') return { values, words: [...rest, ...words.slice(i + 1)] };
    if (word.startsWith('--')) {
      const equals = word.indexOf('=');
      const name = equals < 0 ? word : word.slice(0, equals);
      const option = longOption(options, name);
      if (equals >= 0 && option.value === 'none')
        throw wrongOption(`option '${option.long}' doesn't allow an argument`);
      if (equals >= 0) values.put(option, word.slice(equals + 1));
      else if (option.value === 'needed') values.put(option, next(words, ++i, `option '${option.long}'`));
      else values.put(option, '');
    } else if (word.startsWith('-') && word !== '-') {
      i = short(options, words, i, values);
    } else if (optionsFirst) return { values, words: words.slice(i) };
    else rest.push(word);
  }
  return { values, words: rest };
}

class Values extends Map<string, string> {
  put({ name, grows }: Row, value: string): void {
    const before = grows ? this.get(name) : undefined;
    this.set(name, before === undefined ? value : `${before},${value}`);
  }
}

export interface Row {
  /** Without its dashes. */
  readonly name: string;
  readonly long: string;
  readonly letter: string;
  readonly value: 'none' | 'needed' | 'optional';
  readonly grows: boolean;
}

/** An option, as a word of a spec says it. */
export function rowOf(text: string): Row {
  const [, names = '', mark = ''] = /^(.*?)(=[?+]?)?$/.exec(text) ?? [];
  const [first = '', second = first] = names.split('|');
  return {
    name: second.replace(/^-+/, ''),
    long: second,
    letter: first.startsWith('--') ? '' : first.slice(1),
    value: mark === '' ? 'none' : mark === '=?' ? 'optional' : 'needed',
    grows: mark === '=+',
  };
}

function longOption(options: readonly Row[], name: string): Row {
  const exact = options.find(({ long }) => long === name);
  if (exact) return exact;
  const near = options.filter(({ long }) => long.startsWith(name));
  const [only, other] = near;
  if (only && !other) return only;
  throw wrongOption(
    only
      ? `option '${name}' is ambiguous; possibilities: ${near.map(({ long }) => `'${long}'`).join(' ')}`
      : `unrecognized option '${name}'`,
  );
}

/** Letters may stand together, the last with its value. */
function short(options: readonly Row[], words: readonly string[], at: number, values: Values): number {
  const word = words[at] ?? '';
  for (let i = 1; i < word.length; i++) {
    const letter = word[i] ?? '';
    const option = options.find((one) => one.letter === letter);
    if (option === undefined) throw wrongOption(`invalid option -- '${letter}'`);
    if (option.value === 'none' || (option.value === 'optional' && i + 1 === word.length)) values.put(option, '');
    else if (i + 1 < word.length) {
      values.put(option, word.slice(i + 1));
      return at;
    } else {
      values.put(option, next(words, at + 1, `option requires an argument -- '${letter}'`, true));
      return at + 1;
    }
  }
  return at;
}

function next(words: readonly string[], at: number, what: string, whole = false): string {
  const word = words[at];
  if (word === undefined) throw wrongOption(whole ? what : `${what} requires an argument`);
  return word;
}
