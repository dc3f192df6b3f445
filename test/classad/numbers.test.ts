import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { evaluate, evaluateAttr, parseAd, parseExpr, printValue, Real } from '../../src/classad/api.ts';
import { power } from '../../src/classad/functions/power.ts';
import { arithmetic, relation } from '../../src/classad/operators.ts';
import { addInt, divInt, modInt, mulInt, shiftLeft, subInt, wrap64 } from '../../src/classad/int64.ts';
import { formatExponent, formatGeneral, oldReal, readDouble } from '../../src/classad/number-text.ts';

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -100n, max: 100n }),
  fc.constantFrom(2n ** 53n, 2n ** 53n - 1n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n)),
);

test('arithmetic is that of 64 bits, whichever way an integer is kept', () => {
  fc.assert(
    fc.property(int64, int64, (a, b) => {
      const [x, y] = [wrap64(a), wrap64(b)];
      const wrapped = (value: bigint) => wrap64(BigInt.asIntN(64, value));
      expect(addInt(x, y)).toBe(wrapped(a + b));
      expect(subInt(x, y)).toBe(wrapped(a - b));
      expect(mulInt(x, y)).toBe(wrapped(a * b));
      expect(shiftLeft(x, y)).toBe(wrapped(a << BigInt.asUintN(6, b)));
      const overflow = a === -(2n ** 63n) && b === -1n;
      expect(divInt(x, y)).toBe(b === 0n ? undefined : overflow ? 2n ** 63n - 1n : wrapped(a / b));
      expect(modInt(x, y)).toBe(b === 0n ? undefined : wrapped(a % b));
    }),
    { numRuns: 3000 },
  );
});

test('an expression of integers never leaves a float behind', () => {
  fc.assert(
    fc.property(int64, int64, fc.constantFrom('+', '-', '*', '/', '%'), (a, b, op) => {
      const value = evaluate(parseExpr(`(${a}) ${op} (${b})`));
      expect(typeof value === 'bigint' || Number.isSafeInteger(value) || (b === 0n && typeof value === 'object')).toBe(
        true,
      );
    }),
  );
});

// What glibc's printf("%.16G") and ("%1.15E") print.
test.each([
  [0.1 + 0.2, '0.3', '3.000000000000000E-01'],
  [1000000000000000.5, '1000000000000000.0', '1.000000000000000E+15'],
  [1000000000000001.5, '1000000000000002.0', '1.000000000000002E+15'],
  [123456789012345680, '1.234567890123457E+17', '1.234567890123457E+17'],
  [9999999999999998, '9999999999999998.0', '9.999999999999998E+15'],
  [0.00001, '1E-05', '1.000000000000000E-05'],
  [5e-324, '4.940656458412465E-324', '4.940656458412465E-324'],
  [-1e300, '-1E+300', '-1.000000000000000E+300'],
])('%d is printed as C prints it', (value, general, exponent) => {
  expect([oldReal(value), formatExponent(value)]).toEqual([general, exponent]);
});

test('what is printed in 17 digits reads back', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(readDouble(formatGeneral(value, 17))).toBe(value);
    }),
  );
});

test.each([
  [10, -5, 1e-5],
  [10, 26, 1e26],
  [2, 0.5, Math.SQRT2],
  [4, 0.5, 2],
  [-2, 3, -8],
  [-8, 1 / 3, Number.NaN],
  [1, Number.NaN, 1],
  [0, -1, Number.POSITIVE_INFINITY],
  [1.0000001, 1e9, 2.6881038582144647e43],
])('pow(%d, %d)', (base, exponent, result) => {
  expect(power(base, exponent)).toBe(result);
});

test('powers are exact where they can be', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 999 }), fc.integer({ min: 1, max: 60 }), (base, exponent) => {
      expect(power(base, exponent)).toBe(Number(BigInt(base) ** BigInt(exponent)));
      expect(power(10, -exponent)).toBe(Number(`1e-${exponent}`));
    }),
  );
});

test('reals keep their type through every operator', () => {
  expect(printValue(evaluate(parseExpr('4.0 / 2')))).toBe('2.0');
  expect(evaluate(parseExpr('1.0'))).toEqual(new Real(1));
});

const OPERANDS = [
  '0 1 -1 3 0.0 -0.0 2.5 -3.0 real("nan") real("inf") 1e308 true false',
  '9007199254740991 9007199254740992 9007199254740993 -9223372036854775807 9223372036854775807',
  '"3" "LINUX" "linux" undefined error {1} [a=1] relTime("3") absTime(3,0)',
].flatMap((line) => line.split(' '));
const OPERATORS = ['+', '-', '*', '/', '%', '<', '<=', '==', '!=', '>=', '>', '=?=', '=!='] as const;

test.each(OPERATORS)('compiled, %s gives what the operator gives, whatever it meets', (op) => {
  for (const a of OPERANDS) {
    for (const b of OPERANDS) {
      const my = parseAd(`[ A = ${a}; B = ${b}; Sum = A ${op} B; ByOne = A ${op} ${b} ]`);
      const [x, y] = [evaluateAttr(my, 'A'), evaluateAttr(my, 'B')];
      const plain = isArithmetic(op) ? arithmetic(op, x, y) : relation(op, x, y);
      const shown = [plain, evaluateAttr(my, 'Sum'), evaluateAttr(my, 'ByOne')].map((value) => printValue(value));
      // Records and lists are compared by identity, if at all.
      if (!/[[{]/.test(a + b)) expect([a, b, ...shown]).toEqual([a, b, shown[0], shown[0], shown[0]]);
    }
  }
});

function isArithmetic(op: (typeof OPERATORS)[number]): op is '+' | '-' | '*' | '/' | '%' {
  return '+-*/%'.includes(op);
}
