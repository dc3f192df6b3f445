import type { CharSet } from './charset.ts';

export interface Flags {
  readonly caseless: boolean;
  /** `^` and `$` match at every line. */
  readonly multiline: boolean;
  /** `.` matches newlines too. */
  readonly dotAll: boolean;
  /** Blanks and `# comments` in the pattern are ignored. */
  readonly extended: boolean;
}

export type Assertion = 'start' | 'end' | 'line-start' | 'line-end' | 'text-end' | 'word' | 'not-word' | 'first';

/** A parsed regular expression. */
export type Pattern =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'sequence'; readonly items: readonly Pattern[] }
  | { readonly kind: 'choice'; readonly options: readonly Pattern[] }
  | {
      readonly kind: 'repeat';
      readonly item: Pattern;
      readonly least: number;
      readonly most: number;
      readonly lazy: boolean;
    }
  | { readonly kind: 'group'; readonly index: number; readonly item: Pattern }
  | { readonly kind: 'atomic'; readonly item: Pattern }
  | { readonly kind: 'look'; readonly behind: boolean; readonly negative: boolean; readonly item: Pattern }
  | { readonly kind: 'condition'; readonly group: number; readonly yes: Pattern; readonly no: Pattern }
  | { readonly kind: 'backref'; readonly group: number | string; readonly caseless: boolean }
  | { readonly kind: 'assert'; readonly assertion: Assertion }
  | { readonly kind: 'keep' };

/** An invalid pattern, or one that uses an unsupported feature (recursion, \p). */
export class RegexError extends Error {
  override readonly name = 'RegexError';
}
