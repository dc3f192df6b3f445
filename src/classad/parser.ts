import { fold } from './bytes.ts';
import {
  attrRef,
  type BinaryOp,
  binary,
  call,
  type Expr,
  list,
  literal,
  record,
  ternary,
  type UnaryOp,
  unary,
} from './expr.ts';
import { type Dialect, describe, Lexer, type Token } from './lexer.ts';
import { ClassAdSyntaxError } from './syntax-error.ts';
import { parseAbsTime, parseRelTime } from './time-text.ts';

/** HTCondor's limit on nesting, in its units: an expression, a unary and a postfix expression count as one each. */
const MAX_DEPTH = 500;

/** Binary operators by precedence, lowest first; all are left-associative. */
const LEVELS: readonly (readonly BinaryOp[])[] = [
  ['||'],
  ['&&'],
  ['|'],
  ['^'],
  ['&'],
  ['==', '!=', '=?=', '=!='],
  ['<', '>', '<=', '>='],
  ['<<', '>>', '>>>'],
  ['+', '-'],
  ['*', '/', '%'],
];
const LEVEL_OF: ReadonlyMap<string, number> = new Map(LEVELS.flatMap((ops, at) => ops.map((op) => [op, at] as const)));
const UNARY: readonly string[] = ['-', '+', '~', '!'];

/** A recursive descent parser for the grammar of HTCondor's classad library. Throws ClassAdSyntaxError. */
export class Parser {
  private readonly lexer: Lexer;
  private readonly dialect: Dialect;
  private readonly whole: string;
  private readonly offset: number;
  private token: Token;
  private depth = 0;

  /** `whole` and `offset`: the text that contains `text`, and where, for the positions in error messages. */
  constructor(text: string, dialect: Dialect, whole = text, offset = 0) {
    this.dialect = dialect;
    this.whole = whole;
    this.offset = offset;
    this.lexer = new Lexer(text, dialect);
    this.token = this.lexer.next();
  }

  /** The whole text as one expression. Like the library, ignores anything after a `? :` unless `toTheEnd` is set. */
  wholeExpression(toTheEnd = false): Expr {
    const expr = this.expression();
    if ((toTheEnd || expr.kind !== 'ternary') && this.token.type !== 'end') this.fail('an operator or the end');
    return expr;
  }

  /** The whole text as one record `[ a = 1; b = 2 ]`. */
  wholeRecord(): Expr {
    if (!this.at('[')) this.fail("'['");
    const ad = this.record();
    if (this.token.type !== 'end') this.fail('the end');
    return ad;
  }

  private fail(expected: string): never {
    const { token } = this;
    throw new ClassAdSyntaxError(this.whole, this.offset + token.start, expected, describe(token, this.lexer.text));
  }

  private advance(): Token {
    const token = this.token;
    this.token = this.lexer.next();
    return token;
  }

  private at(op: string): boolean {
    return this.token.type === 'op' && this.token.op === op;
  }

  private take(op: string, expected = `'${op}'`): void {
    if (!this.at(op)) this.fail(expected);
    this.advance();
  }

  private nested<T>(parse: () => T): T {
    this.depth += 1;
    if (this.depth > MAX_DEPTH) this.fail('less nesting');
    const result = parse();
    this.depth -= 1;
    return result;
  }

  private expression(): Expr {
    return this.nested(() => {
      const test = this.operators(0);
      if (!this.at('?')) return test;
      this.advance();
      const yes = this.expression();
      this.take(':');
      return ternary(test, yes, this.expression());
    });
  }

  /** All binary operators from `level` up, by precedence climbing. */
  private operators(level: number): Expr {
    let left = this.unary();
    while (this.token.type === 'op') {
      const op = this.token.op;
      const precedence = LEVEL_OF.get(op);
      if (precedence === undefined || precedence < level) break;
      this.advance();
      left = binary(op as BinaryOp, left, this.operators(precedence + 1));
    }
    return left;
  }

  private unary(): Expr {
    return this.nested(() => {
      if (this.token.type !== 'op' || !UNARY.includes(this.token.op)) return this.postfix();
      const op = this.token.op as UnaryOp;
      this.advance();
      return unary(op, this.unary());
    });
  }

  private postfix(): Expr {
    return this.nested(() => {
      let expr = this.primary();
      for (;;) {
        if (this.at('[')) {
          this.advance();
          const index = this.expression();
          this.take(']');
          expr = binary('[]', expr, index);
        } else if (this.at('?:')) {
          this.advance();
          expr = binary('?:', expr, this.postfix());
        } else if (this.at('.')) {
          this.advance();
          expr = attrRef(this.name('an attribute name after the dot'), expr);
        } else return expr;
      }
    });
  }

  private name(expected: string): string {
    if (this.token.type !== 'name') this.fail(expected);
    const { name } = this.token;
    this.advance();
    return name;
  }

  private primary(): Expr {
    const { token } = this;
    if (token.type === 'value') {
      this.advance();
      return literal(token.value);
    }
    if (token.type === 'name') {
      this.advance();
      return this.at('(') ? this.call(token.name) : attrRef(token.name);
    }
    if (this.at('.')) {
      this.advance();
      return attrRef(this.name('an attribute name after the dot'), undefined, true);
    }
    if (this.at('(')) {
      this.advance();
      const inner = this.expression();
      this.take(')', "an operator or ')'");
      return unary('()', inner);
    }
    if (this.at('{')) return this.list();
    if (this.at('[')) return this.record();
    return this.fail('a value, a name or a bracket');
  }

  private call(name: string): Expr {
    const start = this.token;
    this.advance();
    const args: Expr[] = [];
    while (!this.at(')')) {
      if (args.length > 0) {
        if (!this.at(',') && !(this.dialect.oldNumbers && this.at(';'))) this.fail("',' or ')'");
        this.advance();
      }
      args.push(this.expression());
    }
    this.advance();
    return constantTime(name, args) ?? this.timeOrCall(name, args, start);
  }

  /** A constant time that cannot be read is a syntax error. */
  private timeOrCall(name: string, args: readonly Expr[], start: Token): Expr {
    if (isTimeText(name, args)) {
      this.token = start;
      this.fail(`a time that ${name}() can read`);
    }
    return call(name, args);
  }

  private list(): Expr {
    this.advance();
    const items: Expr[] = [];
    while (!this.at('}')) {
      if (items.length > 0) this.take(',', "',' or '}'");
      items.push(this.expression());
    }
    this.advance();
    return list(items);
  }

  private record(): Expr {
    this.advance();
    const attrs = new Map<string, readonly [string, Expr]>();
    let first = true;
    while (!this.at(']')) {
      if (this.at(';')) {
        this.advance();
        if (first && this.at(']')) this.fail('an attribute name');
        continue;
      }
      const name = this.name("an attribute name or ']'");
      this.take('=');
      const value = this.expression();
      const key = fold(name);
      attrs.set(key, [attrs.get(key)?.[0] ?? name, value]);
      if (!this.at(';') && !this.at(']')) this.fail("an operator, ';' or ']'");
      first = false;
    }
    this.advance();
    return record([...attrs.values()]);
  }
}

function isTimeText(name: string, args: readonly Expr[]): boolean {
  const [only] = args;
  const lower = name.toLowerCase();
  if (lower !== 'abstime' && lower !== 'reltime') return false;
  return args.length === 1 && only?.kind === 'literal' && typeof only.value === 'string';
}

/** absTime("…") and relTime("…") are literals. */
function constantTime(name: string, args: readonly Expr[]): Expr | undefined {
  const [only] = args;
  if (!isTimeText(name, args) || only?.kind !== 'literal' || typeof only.value !== 'string') return undefined;
  const value = name.toLowerCase() === 'abstime' ? parseAbsTime(only.value) : parseRelTime(only.value);
  return value === undefined ? undefined : literal(value);
}
