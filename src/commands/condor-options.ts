import { GryphusError } from '../errors.ts';

/** An option of the HTCondor tool that a command replaces. */
export interface CondorOption {
  /** HTCondor's spelling without the dash. */
  readonly name: string;
  /** How many of its letters are enough; if absent, as many as make it unique. */
  readonly least?: number;
  /** What follows it: one word, or all words up to the next option. */
  readonly takes?: 'word' | 'words';
  /** `-name:WORD` is allowed. */
  readonly colon?: true;
  /** The equivalent words of ours; if absent, the flag of the same name. `colon`: the text after a colon. */
  readonly means?: (value: string, colon: string | undefined) => readonly string[];
  /** Giving it twice cancels it. */
  readonly toggles?: true;
  /** Why it is not supported, and what to use instead. */
  readonly refused?: readonly [reason: string, instead: string];
}

export interface Taken {
  /** The equivalent in our own words. */
  readonly words: readonly string[];
  /** How many of HTCondor's words it replaces. */
  readonly used: number;
  readonly option: CondorOption;
}

/**
 * Takes the option that `words` begin with, if it is one of these: after one dash in any case and possibly shortened,
 * after two dashes only in full. Throws GryphusError 'usage' if the option is refused, ambiguous, or lacks its word.
 */
export function takeOption(words: readonly string[], options: readonly CondorOption[]): Taken | undefined {
  const [, dashes = '', typed = '', colon] = /^(--?)([A-Za-z][\w-]*)(?::(.*))?$/s.exec(words[0] ?? '') ?? [];
  if (typed === '') return undefined;
  const option = dashes === '--' ? whole(typed, options) : shortened(typed, options);
  if (option === undefined || (colon !== undefined && option.colon !== true)) return undefined;
  const { name, refused, means = () => [`--${name.toLowerCase()}`] } = option;
  if (refused !== undefined) {
    throw new GryphusError('usage', `${dashes}${name}: ${refused[0]}`, { suggestions: [refused[1]] });
  }
  if (option.takes === undefined) return { words: means('', colon), used: 1, option };
  const [first, ...more] = words.slice(1);
  if (first === undefined) throw new GryphusError('usage', `${dashes}${name} requires another argument.`);
  if (option.takes === 'word') {
    const said = option.means?.(first, colon) ?? [`--${name.toLowerCase()}`, first];
    return { words: said, used: 2, option };
  }
  const end = more.findIndex((word) => word.startsWith('-') && word !== '-');
  const all = [first, ...(end < 0 ? more : more.slice(0, end))];
  return { words: means(all.join(' '), colon), used: 1 + all.length, option };
}

function whole(typed: string, options: readonly CondorOption[]): CondorOption | undefined {
  return options.find(({ name }) => name.toLowerCase() === typed.toLowerCase());
}

function shortened(typed: string, options: readonly CondorOption[]): CondorOption | undefined {
  const exact = whole(typed, options);
  if (exact) return exact;
  const low = typed.toLowerCase();
  const near = options.filter(({ name, least = 1 }) => name.toLowerCase().startsWith(low) && low.length >= least);
  const first = near.find(({ least }) => least !== undefined) ?? near[0];
  if (near.length < 2 || first?.least !== undefined) return first;
  throw new GryphusError('usage', `-${typed} may be ${near.map(({ name }) => `-${name}`).join(' or ')}.`, {
    suggestions: ["Write more of the option's name."],
  });
}
