import * as fc from 'fast-check';
import {
  attrRef,
  binary,
  call,
  type Expr,
  functionNames,
  list,
  literal,
  Real,
  record,
  RelTime,
  ternary,
  unary,
} from '../../src/classad/api.ts';
import { AbsTime, ERROR } from '../../src/classad/api.ts';

const names = fc.constantFrom(
  'a',
  'B',
  'Memory',
  'true',
  'weird name',
  "o'clock",
  'parent',
  'MY',
  'TARGET',
  'é',
  '_x9',
);
const plainNames = fc.constantFrom('a', 'B', 'Memory', 'self', '_x9');
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
});
/** Reals of at most 15 digits: printing keeps 16. */
const reals = fc
  .double({ noDefaultInfinity: true, noNaN: true })
  .map((value) => new Real(Number(value.toPrecision(15))));

/** Strings that the old syntax can represent: no NUL, and no backslash before a quote or at the end. */
function strings(old: boolean): fc.Arbitrary<string> {
  const any = fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => text.replaceAll('\0', ''));
  return old
    ? any.map((text) => text.replaceAll('\\', '/'))
    : fc.oneof(any, fc.constantFrom('\\', 'a"b', '\n\t\x07\x7f'));
}

/** A time written as text is a literal to the parser, and a syntax error if it cannot be parsed: never a call. */
function called(name: string, args: readonly Expr[]): Expr {
  const [only] = args;
  const words = only?.kind === 'literal' && typeof only.value === 'string' && args.length === 1;
  return call(name, words && /^(?:abs|rel)Time$/.test(name) ? [only, only] : args);
}

/** Expressions that the parser could have produced. */
export function expressions(old: boolean): fc.Arbitrary<Expr> {
  const leaves: fc.Arbitrary<Expr> = fc.oneof(
    int64.filter((value) => value >= 0).map((value) => literal(value)),
    reals.filter(({ value }) => value >= 0 && !Object.is(value, -0)).map((value) => literal(value)),
    strings(old).map((value) => literal(value)),
    fc.constantFrom(true, false, undefined, ERROR).map((value) => literal(value)),
    fc.integer({ min: 0, max: 4e9 }).map((secs) => literal(new AbsTime(secs, 3600))),
    fc.integer({ min: 0, max: 1e6 }).map((secs) => literal(new RelTime(secs))),
    names.map((name) => attrRef(name)),
    plainNames.map((name) => attrRef(name, undefined, true)),
  );
  const { tree } = fc.letrec<{ tree: Expr }>((tie) => {
    const inner = tie('tree');
    const paren = inner.map((expr) => unary('()', expr));
    const operators = fc.constantFrom(
      ...(['<', '==', '=?=', '=!=', '+', '-', '*', '/', '%', '||', '&&', '|', '^', '&', '<<', '>>', '>>>'] as const),
    );
    return {
      tree: fc.oneof(
        { maxDepth: 5, withCrossShrink: true },
        leaves,
        fc.tuple(operators, paren, paren).map(([op, left, right]) => binary(op, left, right)),
        fc.tuple(fc.constantFrom(...(['-', '+', '!', '~'] as const)), paren).map(([op, operand]) => unary(op, operand)),
        fc.tuple(paren, paren, paren).map(([test, yes, no]) => unary('()', ternary(test, yes, no))),
        fc.tuple(paren, inner).map(([base, index]) => binary('[]', base, index)),
        fc.tuple(paren, paren).map(([value, other]) => binary('?:', value, other)),
        fc.tuple(paren, plainNames).map(([base, name]) => attrRef(name, base)),
        fc
          .tuple(fc.constantFrom(...functionNames(), 'nosuch'), fc.array(inner, { maxLength: 4 }))
          .map(([name, args]) => called(name, args)),
        fc.array(inner, { maxLength: 3 }).map((items) => list(items)),
        fc
          .uniqueArray(fc.tuple(names, inner), { maxLength: 3, selector: ([name]) => name })
          .map((attrs) => record(attrs)),
      ),
    };
  });
  return tree;
}

const PIECES = `a TARGET.b MY. 1 -1 2.5 1e999 0x1F 9223372036854775807 "x" "\\ 'q_q' undefined error true ( ) [ ] { } , ; = == =?= ? : ?: .
  + - * / % && || ! ~ << >>> // /* */ regexp("(a*)*b",a) strcat( eval( size( split("a,b") is`;

/** Fragments of the language, valid and invalid, in random order. */
export const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(' ', '\n', '\0', ...PIECES.split(/\s+/)),
      fc.constantFrom(...functionNames()).map((name) => `${name}(`),
      fc.string({ maxLength: 3 }),
    ),
    { maxLength: 25 },
  )
  .map((parts) => parts.join(''));
