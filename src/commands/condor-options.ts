import { GryphusError } from '../errors.ts';

/** An option of the HTCondor tool whose place a command takes. */
export interface CondorOption {
  /** As HTCondor spells it, without its dash. */
  readonly name: string;
  /** How many of its letters choose it; absent: as many as no other option begins with. */
  readonly least?: number;
  /** What follows it: one word, or all words up to the next option. */
  readonly takes?: 'word' | 'words';
  /** `-name:WORD` is allowed. */
  readonly colon?: true;
  /** The same in words of ours; absent: the flag of that name. `colon`: what stood behind a colon. */
  readonly means?: (value: string, colon: string | undefined) => readonly string[];
  /** Given twice, it is as if it had not been given. */
  readonly toggles?: true;
  /** Why it is not taken, and what to do instead. */
  readonly refused?: readonly [reason: string, instead: string];
}

export interface Taken {
  /** In words of ours. */
  readonly words: readonly string[];
  /** How many words of HTCondor's these were. */
  readonly used: number;
  readonly option: CondorOption;
}

/**
 * What the first of `words` asks for, if it is one of these options: behind one dash in capitals or not, shortened or
 * not; behind two dashes whole. Throws GryphusError 'usage' where the option is refused, ambiguous, or lacks its word.
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
    suggestions: ['Write more of its letters.'],
  });
}
