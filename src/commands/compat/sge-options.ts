import { Refused } from './options.ts';

/** What was given to one of Grid Engine's commands: the last value of each option, and the other words. */
export interface SgeGiven {
  readonly values: ReadonlyMap<string, string>;
  readonly words: readonly string[];
}

/** Grid Engine's options are words after one dash. `spec`: their names apart by blanks, with `=` if they take a value. */
export function sgeOptions(spec: string, words: readonly string[]): SgeGiven {
  const takes = new Map(spec.split(' ').map((one) => [one.replace(/=$/, ''), one.endsWith('=')]));
  const values = new Map<string, string>();
  const rest: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (!word.startsWith('-')) {
      rest.push(word);
      continue;
    }
    const value = takes.get(word);
    if (value === undefined) throw new Refused(`invalid option argument "${word}"`, 1);
    if (!value) values.set(word, '');
    else {
      const next = words[++i];
      if (next === undefined) throw new Refused(`ERROR! ${word} option must have an argument`, 1);
      values.set(word, next);
    }
  }
  return { values, words: rest };
}
