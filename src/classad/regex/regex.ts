import { type Budget, matchRegex, type MatchOptions, type MatchResult } from './match.ts';
import { parseRegex } from './parse.ts';
import { assemble, type Program } from './program.ts';
import { type Flags, RegexError } from './syntax.ts';

/** A compiled regular expression over bytes (one character each). */
export class Regex {
  private readonly program: Program;

  private constructor(program: Program) {
    this.program = program;
  }

  /** `undefined` if the pattern is not a valid regular expression. */
  static compile(source: string, flags: Flags): Regex | undefined {
    const key = `${Number(flags.caseless)}${Number(flags.multiline)}${Number(flags.dotAll)}${Number(flags.extended)}${source}`;
    const known = CACHE.get(key);
    if (known !== undefined) return known === null ? undefined : known;
    if (CACHE.size >= MAX_CACHED) CACHE.clear();
    const made = Regex.fresh(source, flags);
    CACHE.set(key, made ?? null);
    return made;
  }

  private static fresh(source: string, flags: Flags): Regex | undefined {
    try {
      return new Regex(assemble(parseRegex(source, flags)));
    } catch (thrown) {
      if (thrown instanceof RegexError) return undefined;
      throw thrown;
    }
  }

  /** The first match at or after `from`. Throws RegexStopped when the budget is used up. */
  match(subject: string, from: number, budget: Budget, options?: MatchOptions): MatchResult | undefined {
    return matchRegex(this.program, subject, from, budget, options);
  }
}

const MAX_CACHED = 500;
const CACHE = new Map<string, Regex | null>();
