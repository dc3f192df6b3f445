import {
  anyByte,
  bothCases,
  type CharSet,
  charSet,
  negated,
  otherCase,
  posixSet,
  propertySet,
  shorthandSet,
} from './charset.ts';
import { type Assertion, type Flags, type Pattern, RegexError } from './syntax.ts';

const MAX_REPEAT = 65535;
const MAX_NESTING = 250;
const CONTROL: Readonly<Record<string, number>> = { a: 7, e: 27, f: 12, n: 10, r: 13, t: 9 };
const ASSERTIONS: Readonly<Record<string, Assertion>> = {
  b: 'word',
  B: 'not-word',
  A: 'start',
  z: 'text-end',
  Z: 'end',
  G: 'first',
};
const QUANTIFIER = /([*+?])|\{([0-9]+)(,)?([0-9]*)\}/y;
const NEWLINE_SEQUENCE = charSet((code) => (code >= 10 && code <= 13) || code === 133);

export interface ParsedRegex {
  readonly pattern: Pattern;
  /** The number of capturing groups, not counting the whole match. */
  readonly groups: number;
  readonly names: ReadonlyMap<string, number>;
}

/** Parses PCRE's syntax, on bytes. Throws RegexError. */
export function parseRegex(source: string, flags: Flags): ParsedRegex {
  return new RegexParser(source, flags).whole();
}

class RegexParser {
  private readonly source: string;
  private flags: Flags;
  private at = 0;
  private groups = 0;
  private nesting = 0;
  private readonly names = new Map<string, number>();

  constructor(source: string, flags: Flags) {
    this.source = source;
    this.flags = flags;
  }

  whole(): ParsedRegex {
    const pattern = this.alternatives();
    if (this.at < this.source.length) throw new RegexError('unmatched closing parenthesis');
    return { pattern, groups: this.groups, names: this.names };
  }

  private alternatives(between?: () => void): Pattern {
    this.nesting += 1;
    if (this.nesting > MAX_NESTING) throw new RegexError('parentheses are too deeply nested');
    const before = this.flags;
    const options = [this.sequence()];
    while (this.eat('|')) {
      between?.();
      options.push(this.sequence());
    }
    this.flags = before;
    this.nesting -= 1;
    return options.length === 1 && options[0] !== undefined ? options[0] : { kind: 'choice', options };
  }

  private sequence(): Pattern {
    const items: Pattern[] = [];
    for (;;) {
      this.skipIgnored();
      const char = this.source[this.at];
      if (char === undefined || char === '|' || char === ')') break;
      if (this.source.startsWith('\\Q', this.at)) items.push(...this.verbatim());
      else if (this.source.startsWith('\\E', this.at)) this.at += 2;
      else {
        const atom = this.atom();
        if (atom !== undefined) items.push(this.repeated(atom));
      }
    }
    return { kind: 'sequence', items };
  }

  /** Skips comments and, in an extended pattern, blanks. They may stand between an item and its quantifier. */
  private skipIgnored(): void {
    this.match(this.flags.extended ? /(?:\(\?#[^)]*\)|[ \t\n\v\f\r]+|#[^\n]*\n?)*/y : /(?:\(\?#[^)]*\))*/y);
  }

  /** `\Q…\E`. A quantifier after it applies to its last character. */
  private verbatim(): Pattern[] {
    const end = this.source.indexOf('\\E', this.at);
    const text = this.source.slice(this.at + 2, end < 0 ? undefined : end);
    this.at = end < 0 ? this.source.length : end + 2;
    const items = Array.from(text, (char) => this.literal(char.charCodeAt(0)));
    const last = items.pop();
    return last === undefined ? [] : [...items, this.repeated(last)];
  }

  private eat(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  private match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.source);
    if (found === null) return undefined;
    this.at += found[0].length;
    return found;
  }

  private repeated(item: Pattern): Pattern {
    this.skipIgnored();
    const counted = this.match(QUANTIFIER);
    if (counted === undefined) return item;
    if (item.kind === 'assert' || item.kind === 'keep')
      throw new RegexError('quantifier does not follow a repeatable item');
    const [, mark, low, comma, high] = counted;
    const [least, most] = bounds(mark, low, comma, high);
    if (least > MAX_REPEAT || (most > MAX_REPEAT && most !== Number.POSITIVE_INFINITY) || least > most)
      throw new RegexError('numbers in {} are out of order or too big');
    this.skipIgnored();
    const possessive = this.eat('+');
    const lazy = !possessive && this.eat('?');
    const result: Pattern = { kind: 'repeat', item, least, most, lazy };
    this.skipIgnored();
    if (this.match(QUANTIFIER) !== undefined) throw new RegexError('quantifier does not follow a repeatable item');
    return possessive ? { kind: 'atomic', item: result } : result;
  }

  private literal(code: number): Pattern {
    const other = this.flags.caseless ? otherCase(code) : code;
    return { kind: 'set', set: charSet((each) => each === code || each === other) };
  }

  private ofSet(set: CharSet): Pattern {
    return { kind: 'set', set: this.flags.caseless ? bothCases(set) : set };
  }

  private atom(): Pattern | undefined {
    const char = this.source.charAt(this.at);
    this.at += 1;
    switch (char) {
      case '.':
        return { kind: 'set', set: charSet((code) => this.flags.dotAll || code !== 10) };
      case '^':
        return { kind: 'assert', assertion: this.flags.multiline ? 'line-start' : 'start' };
      case '$':
        return { kind: 'assert', assertion: this.flags.multiline ? 'line-end' : 'end' };
      case '[':
        if (this.match(/([:.=])[^\]\\]*\1\]/y) !== undefined)
          throw new RegexError('POSIX named classes are supported only within a class');
        return this.ofSet(this.bracket());
      case '(':
        return this.parenthesis();
      case '\\':
        return this.escape();
      case '*':
      case '+':
      case '?':
        throw new RegexError('quantifier does not follow a repeatable item');
      case '{':
        this.at -= 1;
        if (this.match(QUANTIFIER) !== undefined) throw new RegexError('quantifier does not follow a repeatable item');
        this.at += 1;
        return this.literal(char.charCodeAt(0));
      default:
        return this.literal(char.charCodeAt(0));
    }
  }

  private close<T>(value: T): T {
    if (!this.eat(')')) throw new RegexError('missing closing parenthesis');
    return value;
  }

  private parenthesis(): Pattern | undefined {
    const inline = this.match(/\?([imsxnJU]*)(?:-([imsxnJU]*))?([:)])/y);
    if (inline !== undefined) return this.inlineFlags(inline);
    const named = this.match(/\?(?:P?<|')([A-Za-z_][A-Za-z0-9_]*)[>']/y);
    if (named !== undefined) return this.capture(named[1]);
    if (this.eat('?>')) return this.close({ kind: 'atomic', item: this.alternatives() });
    if (this.eat('?|')) return this.close(this.resetting());
    const look = this.match(/\?(<?)([=!])/y);
    if (look !== undefined) {
      const item = this.alternatives();
      return this.close({ kind: 'look', behind: look[1] === '<', negative: look[2] === '!', item });
    }
    const test = this.match(/\?\(([0-9]+)\)/y);
    if (test !== undefined) return this.condition(Number(test[1]));
    const byName = this.match(/\?P=([A-Za-z_][A-Za-z0-9_]*)/y);
    if (byName !== undefined)
      return this.close({ kind: 'backref', group: byName[1] ?? '', caseless: this.flags.caseless });
    if (this.source[this.at] === '?' || this.source[this.at] === '*')
      throw new RegexError('this kind of group is not supported');
    return this.capture(undefined);
  }

  /** `(?|(a)|(b))`: every alternative numbers its groups from the same start. */
  private resetting(): Pattern {
    const before = this.groups;
    let most = before;
    const item = this.alternatives(() => {
      most = Math.max(most, this.groups);
      this.groups = before;
    });
    this.groups = Math.max(most, this.groups);
    return item;
  }

  private capture(name: string | undefined): Pattern {
    this.groups += 1;
    const index = this.groups;
    if (name !== undefined) {
      if (this.names.has(name)) throw new RegexError('two named groups have the same name');
      this.names.set(name, index);
    }
    return this.close({ kind: 'group', index, item: this.alternatives() });
  }

  private condition(group: number): Pattern {
    const yes = this.sequence();
    const no: Pattern = this.eat('|') ? this.sequence() : { kind: 'sequence', items: [] };
    return this.close({ kind: 'condition', group, yes, no });
  }

  /** `(?i)` applies to the end of the enclosing group, `(?i:…)` to its contents. */
  private inlineFlags([, on = '', off = '', end]: RegExpExecArray): Pattern | undefined {
    const before = this.flags;
    const has = (letter: string, now: boolean): boolean => (on.includes(letter) || now) && !off.includes(letter);
    this.flags = {
      caseless: has('i', before.caseless),
      multiline: has('m', before.multiline),
      dotAll: has('s', before.dotAll),
      extended: has('x', before.extended),
    };
    if (end === ')') return undefined;
    const item = this.alternatives();
    this.flags = before;
    return this.close(item);
  }

  private escape(): Pattern {
    const letter = this.source.charAt(this.at);
    if (letter === '') throw new RegexError('\\ at the end of the pattern');
    const shorthand = shorthandSet(letter);
    const assertion = ASSERTIONS[letter];
    if (shorthand !== undefined || assertion !== undefined) this.at += 1;
    if (shorthand !== undefined) return { kind: 'set', set: shorthand };
    if (assertion !== undefined) return { kind: 'assert', assertion };
    if (this.eat('K')) return { kind: 'keep' };
    if (this.eat('R')) return lineEnd(NEWLINE_SEQUENCE);
    if (this.eat('X')) return lineEnd(anyByte());
    if (this.eat('C')) return { kind: 'set', set: anyByte() };
    const property = this.property();
    if (property !== undefined) return { kind: 'set', set: property };
    const back = this.match(/g\{?(-?[0-9]+)\}?|k(?:\{|<|')([A-Za-z_][A-Za-z0-9_]*)[}>']|([1-9][0-9]*)/y);
    if (back !== undefined) return this.backReference(back);
    return this.literal(this.charEscape());
  }

  private backReference([whole, relative, name, plain]: RegExpExecArray): Pattern {
    const { caseless } = this.flags;
    if (name !== undefined) return { kind: 'backref', group: name, caseless };
    const number = Number(relative ?? plain);
    // \11 is octal unless there are that many groups.
    if (plain !== undefined && number > 9 && number > this.groups) {
      this.at -= whole.length;
      return this.literal(this.charEscape());
    }
    return { kind: 'backref', group: number < 0 ? this.groups + 1 + number : number, caseless };
  }

  /** The character that an escape stands for; starts after the backslash. */
  private charEscape(): number {
    const hex = this.match(/x(?:\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{0,2}))/y);
    if (hex !== undefined) return byte(Number.parseInt(hex[1] ?? (hex[2] || '0'), 16));
    const octal = this.match(/o\{([0-7]+)\}|([0-7]{1,3})/y);
    if (octal !== undefined) return byte(Number.parseInt(octal[1] ?? octal[2] ?? '0', 8));
    const control = this.match(/c([ -~])/y);
    if (control !== undefined) return (control[1] ?? '@').toUpperCase().charCodeAt(0) ^ 64;
    const char = this.source.charAt(this.at);
    this.at += 1;
    const known = CONTROL[char];
    if (known !== undefined) return known;
    if (/[A-Za-z0-9]/.test(char)) throw new RegexError(`unrecognized escape \\${char}`);
    return char.charCodeAt(0);
  }

  /** Starts after `[` and ends with `]`. */
  private bracket(): CharSet {
    const negative = this.eat('^');
    const flags = new Uint8Array(256);
    const add = (set: CharSet): void => set.forEach((flag, code) => flag === 1 && (flags[code] = 1));
    for (let first = true; first || this.source[this.at] !== ']'; first = false) {
      if (this.at >= this.source.length) throw new RegexError('missing ] for a character class');
      if (this.eat('\\E')) continue;
      const verbatim = this.match(/\\Q(.*?)(?:\\E|$)/sy);
      if (verbatim !== undefined) {
        for (const each of verbatim[1] ?? '') flags[each.charCodeAt(0)] = 1;
        continue;
      }
      const from = this.classItem();
      const range = /^-[^\]]/.test(this.source.slice(this.at, this.at + 2));
      if (range) this.at += 1;
      const to = range ? this.classItem() : from;
      if (typeof from === 'number' && typeof to === 'number') {
        if (to < from) throw new RegexError('range out of order in a character class');
        flags.fill(1, from, to + 1);
      } else if (range) throw new RegexError('invalid range in a character class');
      else if (typeof from !== 'number') add(from);
    }
    this.at += 1;
    const set = this.flags.caseless ? bothCases(flags) : flags;
    return negative ? negated(set) : set;
  }

  private classItem(): number | CharSet {
    const posix = this.match(/\[:(\^?)([a-z]+):\]/y);
    if (posix !== undefined) {
      const set = posixSet(posix[2] ?? '');
      if (set === undefined) throw new RegexError('unknown POSIX class name');
      return posix[1] === '^' ? negated(set) : set;
    }
    if (!this.eat('\\')) {
      this.at += 1;
      return this.source.charCodeAt(this.at - 1);
    }
    if (this.eat('b')) return 8;
    const property = this.property();
    if (property !== undefined) return property;
    const shorthand = shorthandSet(this.source.charAt(this.at));
    if (shorthand === undefined) return this.charEscape();
    this.at += 1;
    return shorthand;
  }

  /** `pL`, `p{Lu}`, `p{^Lu}`, `P{Latin}`; starts after the backslash. */
  private property(): CharSet | undefined {
    const found = this.match(/([pP])(?:([A-Z])|\{(\^?)([^}]*)\})/y);
    if (found === undefined) return undefined;
    const set = propertySet(found[2] ?? found[4] ?? '', this.flags.caseless);
    if (set === undefined) throw new RegexError('unknown property name');
    return (found[1] === 'P') !== (found[3] === '^') ? negated(set) : set;
  }
}

/** CR LF together, or one byte of the set. */
function lineEnd(other: CharSet): Pattern {
  const one = (code: number): Pattern => ({ kind: 'set', set: charSet((each) => each === code) });
  const both: Pattern = { kind: 'sequence', items: [one(13), one(10)] };
  return { kind: 'atomic', item: { kind: 'choice', options: [both, { kind: 'set', set: other }] } };
}

function byte(code: number): number {
  if (code > 255) throw new RegexError('character code is too large');
  return code;
}

function bounds(
  mark: string | undefined,
  least: string | undefined,
  comma: string | undefined,
  most: string | undefined,
): [number, number] {
  if (mark !== undefined) return [mark === '+' ? 1 : 0, mark === '?' ? 1 : Number.POSITIVE_INFINITY];
  const low = Number(least);
  if (comma === undefined) return [low, low];
  return [low, most === '' || most === undefined ? Number.POSITIVE_INFINITY : Number(most)];
}
