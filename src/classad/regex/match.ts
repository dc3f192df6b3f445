import { wordByte } from './charset.ts';
import type { Instruction, Program } from './program.ts';
import type { Assertion } from './syntax.ts';

/** The steps that a match may still take; shared by the matches of one evaluation. */
export interface Budget {
  steps: number;
}

/** Thrown when the budget is used up because the pattern would backtrack practically forever. */
export class RegexStopped {
  readonly type = 'regex-stopped';
}

export interface MatchOptions {
  /** The match must begin at `from`. */
  readonly anchored?: boolean;
  /** The match may not be empty; `'at-start'`: only not at `from`. */
  readonly notEmpty?: boolean | 'at-start';
}

/** Start and end of the whole match and of each group; -1 for a group that did not take part. */
export type MatchResult = Int32Array;

/** How many choices may be open at once; more would be out of hand. */
const MAX_STACK = 1_000_000;

/** Finds the first match at or after `from`. Throws RegexStopped. */
export function matchRegex(
  program: Program,
  subject: string,
  from: number,
  budget: Budget,
  options: MatchOptions = {},
): MatchResult | undefined {
  const machine = new Machine(program, subject, from, budget, options);
  const last = options.anchored === true ? from : subject.length;
  for (let start = from; start <= last; start += 1) {
    if (machine.attempt(start)) return machine.slots.slice(0, 2 * (program.groups + 1));
  }
  return undefined;
}

class Machine {
  readonly slots: Int32Array;
  private readonly code: readonly Instruction[];
  private readonly subject: string;
  private readonly from: number;
  private readonly budget: Budget;
  private readonly options: MatchOptions;
  /** The old values of slots, in pairs, for undoing changes. */
  private readonly log: number[] = [];
  private kept = -1;

  constructor(program: Program, subject: string, from: number, budget: Budget, options: MatchOptions) {
    this.code = program.code;
    this.slots = new Int32Array(program.slots);
    this.subject = subject;
    this.from = from;
    this.budget = budget;
    this.options = options;
  }

  attempt(start: number): boolean {
    this.slots.fill(-1);
    this.log.length = 0;
    this.kept = -1;
    const end = this.run(0, start, (at) => {
      const { notEmpty } = this.options;
      if (at !== start || notEmpty === undefined || notEmpty === false) return true;
      return notEmpty === 'at-start' && start !== this.from;
    });
    if (end < 0) return false;
    this.slots[0] = this.kept >= 0 ? this.kept : start;
    this.slots[1] = end;
    return true;
  }

  private setSlot(slot: number, value: number): void {
    this.log.push(slot, this.slots[slot] ?? -1);
    this.slots[slot] = value;
  }

  private undo(to: number): void {
    while (this.log.length > to) {
      const value = this.log.pop() ?? -1;
      this.slots[this.log.pop() ?? 0] = value;
    }
  }

  /** Runs from an instruction and a position to an accepted `match`. Returns the position there, or -1. */
  private run(entry: number, start: number, accept: (at: number) => boolean): number {
    /**
     * Open choices, four numbers each: instruction, position, size of the log, least position (of a `run`, else -1).
     */
    const open: number[] = [];
    let pc = entry;
    let at = start;
    for (;;) {
      this.budget.steps -= 1;
      if (this.budget.steps < 0 || open.length > MAX_STACK) throw new RegexStopped();
      const next = this.step(pc, at, open, accept);
      if (next === DONE) return at;
      if (next >= 0) {
        at += this.taken;
        pc = next;
        continue;
      }
      // Backtrack to the last open choice.
      const least = open.pop();
      if (least === undefined) return -1;
      this.undo(open.pop() ?? 0);
      at = open.pop() ?? 0;
      pc = open.pop() ?? 0;
      if (least >= 0 && at > least) open.push(pc, at - 1, this.log.length, least);
    }
  }

  /** How many bytes the last step consumed. */
  private taken = 0;

  /** Executes one instruction; returns the next one, BACK or DONE. */
  private step(pc: number, at: number, open: number[], accept: (at: number) => boolean): number {
    const instruction = this.code[pc];
    this.taken = 0;
    if (instruction === undefined) return BACK;
    switch (instruction.op) {
      case 'set':
        this.taken = 1;
        return at < this.subject.length && instruction.set[this.subject.charCodeAt(at)] === 1 ? pc + 1 : BACK;
      case 'run': {
        const most = Math.min(this.subject.length - at, instruction.most);
        let count = 0;
        while (count < most && instruction.set[this.subject.charCodeAt(at + count)] === 1) count += 1;
        this.budget.steps -= count >> 3;
        if (count < instruction.least) return BACK;
        if (count > instruction.least) open.push(pc + 1, at + count - 1, this.log.length, at + instruction.least);
        this.taken = count;
        return pc + 1;
      }
      case 'split':
        open.push(instruction.second, at, this.log.length, -1);
        return instruction.first;
      case 'jump':
        return instruction.to;
      case 'save':
        this.setSlot(instruction.slot, at);
        return pc + 1;
      case 'progress':
        // An iteration that consumed nothing is the last one.
        return this.slots[instruction.slot] === at ? pc + 2 : pc + 1;
      case 'assert':
        return this.holds(instruction.assertion, at) ? pc + 1 : BACK;
      case 'backref':
        return this.again(instruction.group, instruction.caseless, at) ? pc + 1 : BACK;
      case 'sub':
        return this.sub(instruction, pc, at);
      case 'test':
        return (this.slots[2 * instruction.group + 1] ?? -1) >= 0 ? pc + 1 : instruction.otherwise;
      case 'keep':
        this.kept = at;
        return pc + 1;
      case 'match':
        return accept(at) ? DONE : BACK;
    }
  }

  private again(group: number, caseless: boolean, at: number): boolean {
    const start = this.slots[2 * group] ?? -1;
    const end = this.slots[2 * group + 1] ?? -1;
    if (start < 0 || end < 0) return false;
    const wanted = this.subject.slice(start, end);
    const there = this.subject.slice(at, at + wanted.length);
    this.taken = wanted.length;
    this.budget.steps -= wanted.length >> 3;
    return caseless ? there.toLowerCase() === wanted.toLowerCase() : there === wanted;
  }

  private sub(instruction: Instruction & { op: 'sub' }, pc: number, at: number): number {
    const mark = this.log.length;
    const end =
      instruction.kind === 'behind' ? this.behind(instruction.lengths, pc, at) : this.run(pc + 1, at, () => true);
    if (instruction.negative) {
      this.undo(mark);
      this.taken = 0;
      return end < 0 ? instruction.next : BACK;
    }
    this.taken = instruction.kind === 'atomic' ? end - at : 0;
    return end < 0 ? BACK : instruction.next;
  }

  private behind(lengths: readonly number[], pc: number, at: number): number {
    for (const length of lengths) {
      if (length > at) continue;
      const end = this.run(pc + 1, at - length, (place) => place === at);
      if (end >= 0) return end;
    }
    return -1;
  }

  private holds(assertion: Assertion, at: number): boolean {
    const { subject } = this;
    const { length } = subject;
    switch (assertion) {
      case 'start':
        return at === 0;
      case 'first':
        return at === this.from;
      case 'text-end':
        return at === length;
      case 'end':
        return at === length || (at === length - 1 && subject[at] === '\n');
      case 'line-start':
        return at === 0 || (subject[at - 1] === '\n' && at < length);
      case 'line-end':
        return at === length || subject[at] === '\n';
      case 'word':
        return this.isWord(at - 1) !== this.isWord(at);
      case 'not-word':
        return this.isWord(at - 1) === this.isWord(at);
    }
  }

  private isWord(at: number): boolean {
    return at >= 0 && at < this.subject.length && wordByte()[this.subject.charCodeAt(at)] === 1;
  }
}

const BACK = -1;
const DONE = -2;
