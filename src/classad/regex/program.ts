import type { CharSet } from './charset.ts';
import type { ParsedRegex } from './parse.ts';
import { type Assertion, type Pattern, RegexError } from './syntax.ts';

/** An instruction of the matching machine. Jumps are absolute. */
export type Instruction =
  | { readonly op: 'set'; readonly set: CharSet }
  /**
   * Takes from `least` to `most` bytes of the set, as many as possible. One instruction because it is so common in
   * patterns.
   */
  | { readonly op: 'run'; readonly set: CharSet; readonly least: number; readonly most: number }
  | { op: 'split'; first: number; second: number }
  | { op: 'jump'; to: number }
  | { readonly op: 'save'; readonly slot: number }
  /** Leaves a loop whose body consumed nothing. */
  | { op: 'progress'; readonly slot: number }
  | { readonly op: 'assert'; readonly assertion: Assertion }
  | { readonly op: 'backref'; readonly group: number; readonly caseless: boolean }
  | {
      op: 'sub';
      readonly kind: 'atomic' | 'ahead' | 'behind';
      readonly negative: boolean;
      readonly lengths: readonly number[];
      next: number;
    }
  | { op: 'test'; readonly group: number; otherwise: number }
  | { readonly op: 'keep' }
  | { readonly op: 'match' };

export interface Program {
  readonly code: readonly Instruction[];
  /** Two for each group and the whole match, then one for each loop whose body can consume nothing. */
  readonly slots: number;
  readonly groups: number;
}

const MAX_CODE = 200_000;

export function assemble(parsed: ParsedRegex): Program {
  const assembler = new Assembler(parsed);
  assembler.emitPattern(parsed.pattern);
  assembler.code.push({ op: 'match' });
  return { code: assembler.code, slots: assembler.slots, groups: parsed.groups };
}

class Assembler {
  readonly code: Instruction[] = [];
  slots: number;
  private readonly parsed: ParsedRegex;

  constructor(parsed: ParsedRegex) {
    this.parsed = parsed;
    this.slots = 2 * (parsed.groups + 1);
  }

  private push<T extends Instruction>(instruction: T): T {
    if (this.code.length >= MAX_CODE) throw new RegexError('the pattern is too large');
    this.code.push(instruction);
    return instruction;
  }

  emitPattern(pattern: Pattern): void {
    switch (pattern.kind) {
      case 'set':
        this.push({ op: 'set', set: pattern.set });
        return;
      case 'sequence':
        for (const item of pattern.items) this.emitPattern(item);
        return;
      case 'choice':
        this.choice(pattern.options);
        return;
      case 'repeat':
        this.repeat(pattern.item, pattern.least, pattern.most, pattern.lazy);
        return;
      case 'group':
        this.push({ op: 'save', slot: 2 * pattern.index });
        this.emitPattern(pattern.item);
        this.push({ op: 'save', slot: 2 * pattern.index + 1 });
        return;
      case 'atomic':
        this.sub('atomic', false, [], pattern.item);
        return;
      case 'look':
        this.sub(pattern.behind ? 'behind' : 'ahead', pattern.negative, lengthsOf(pattern), pattern.item);
        return;
      case 'condition':
        this.condition(pattern.group, pattern.yes, pattern.no);
        return;
      case 'backref':
        this.push({ op: 'backref', group: this.groupOf(pattern.group), caseless: pattern.caseless });
        return;
      case 'assert':
        this.push({ op: 'assert', assertion: pattern.assertion });
        return;
      case 'keep':
        this.push({ op: 'keep' });
    }
  }

  private groupOf(group: number | string): number {
    const index = typeof group === 'string' ? this.parsed.names.get(group) : group;
    if (index === undefined || index < 1 || index > this.parsed.groups)
      throw new RegexError('reference to non-existent subpattern');
    return index;
  }

  private choice(options: readonly Pattern[]): void {
    const exits = options.slice(0, -1).map((option) => {
      const split = this.push({ op: 'split', first: this.code.length + 1, second: 0 });
      this.emitPattern(option);
      const exit = this.push({ op: 'jump', to: 0 });
      split.second = this.code.length;
      return exit;
    });
    const last = options.at(-1);
    if (last !== undefined) this.emitPattern(last);
    for (const exit of exits) exit.to = this.code.length;
  }

  private repeat(item: Pattern, least: number, most: number, lazy: boolean): void {
    if (item.kind === 'set' && !lazy) {
      this.push({ op: 'run', set: item.set, least, most });
      return;
    }
    for (let count = 0; count < least; count += 1) this.emitPattern(item);
    if (most === Number.POSITIVE_INFINITY) this.loop(item, lazy);
    else this.optional(item, most - least, lazy);
  }

  private loop(item: Pattern, lazy: boolean): void {
    const start = this.code.length;
    const split = this.push({ op: 'split', first: 0, second: 0 });
    const slot = this.slots;
    this.slots += 1;
    this.push({ op: 'save', slot });
    this.emitPattern(item);
    this.push({ op: 'progress', slot });
    this.push({ op: 'jump', to: start });
    split.first = lazy ? this.code.length : start + 1;
    split.second = lazy ? start + 1 : this.code.length;
  }

  private optional(item: Pattern, times: number, lazy: boolean): void {
    const splits: { first: number; second: number; op: 'split' }[] = [];
    for (let count = 0; count < times; count += 1) {
      splits.push(this.push({ op: 'split', first: this.code.length + 1, second: 0 }));
      this.emitPattern(item);
    }
    for (const split of splits) {
      split.second = this.code.length;
      if (lazy) [split.first, split.second] = [split.second, split.first];
    }
  }

  private sub(kind: 'atomic' | 'ahead' | 'behind', negative: boolean, lengths: readonly number[], item: Pattern): void {
    const sub = this.push({ op: 'sub', kind, negative, lengths, next: 0 });
    this.emitPattern(item);
    this.push({ op: 'match' });
    sub.next = this.code.length;
  }

  private condition(group: number, yes: Pattern, no: Pattern): void {
    const test = this.push({ op: 'test', group: this.groupOf(group), otherwise: 0 });
    this.emitPattern(yes);
    const exit = this.push({ op: 'jump', to: 0 });
    test.otherwise = this.code.length;
    this.emitPattern(no);
    exit.to = this.code.length;
  }
}

/** The lengths that a lookbehind can have; each of its alternatives has a fixed one. */
function lengthsOf(look: Pattern & { kind: 'look' }): readonly number[] {
  if (!look.behind) return [];
  const options = look.item.kind === 'choice' ? look.item.options : [look.item];
  return [...new Set(options.map(fixedLength))];
}

function fixedLength(pattern: Pattern): number {
  switch (pattern.kind) {
    case 'set':
      return 1;
    case 'sequence':
      return pattern.items.reduce((sum, item) => sum + fixedLength(item), 0);
    case 'group':
    case 'atomic':
      return fixedLength(pattern.item);
    case 'repeat':
      if (pattern.least === pattern.most) return pattern.least * fixedLength(pattern.item);
      break;
    case 'choice': {
      const lengths = new Set(pattern.options.map(fixedLength));
      const [only] = lengths;
      if (lengths.size === 1 && only !== undefined) return only;
      break;
    }
    case 'assert':
    case 'look':
    case 'keep':
      return 0;
    case 'backref':
    case 'condition':
  }
  throw new RegexError('lookbehind assertion is not fixed length');
}
