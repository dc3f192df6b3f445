/** The type as which a value is printed. */
export type FormatKind = 'int' | 'real' | 'string';

interface Conversion {
  readonly flags: string;
  readonly width: number;
  readonly precision: number | undefined;
  readonly length: string;
  readonly letter: string;
}

const CONVERSION = /%([#0\- +']*)(\d*)(?:\.(\d*))?([hlLqjzt]*)([A-Za-z%])/g;

function conversions(format: string): Conversion[] {
  return [...format.matchAll(CONVERSION)]
    .filter((found) => found[5] !== '%')
    .map((found) => ({
      flags: found[1] ?? '',
      width: Number(found[2] ?? 0),
      precision: found[3] === undefined ? undefined : Number(found[3]),
      length: found[4] ?? '',
      letter: found[5] ?? '',
    }));
}

const LETTERS: Readonly<Record<FormatKind, RegExp>> = {
  int: /^[diouxXcC]$/,
  real: /^[eEfFgGaA]$/,
  string: /^[sS]$/,
};

/** Whether this is a printf format with exactly one conversion, which must be of this kind. */
export function isFormat(format: string, kind: FormatKind): boolean {
  if (/%[#0\- +']*(\*|\d*\.\*)/.test(format)) return false;
  const found = conversions(format);
  return found.length === 1 && LETTERS[kind].test(found[0]?.letter ?? '');
}

function fill(conversion: Conversion, sign: string, digits: string, zeros: boolean): string {
  const missing = conversion.width - sign.length - digits.length;
  if (missing <= 0) return sign + digits;
  if (conversion.flags.includes('-')) return sign + digits + ' '.repeat(missing);
  if (zeros && conversion.flags.includes('0')) return sign + '0'.repeat(missing) + digits;
  return ' '.repeat(missing) + sign + digits;
}

function signOf(conversion: Conversion, negative: boolean): string {
  if (negative) return '-';
  if (conversion.flags.includes('+')) return '+';
  return conversion.flags.includes(' ') ? ' ' : '';
}

function bitsOf(length: string): number {
  if (length.includes('hh')) return 8;
  if (length.includes('h')) return 16;
  return length === '' ? 32 : 64;
}

function printInt(conversion: Conversion, value: bigint): string {
  const bits = bitsOf(conversion.length);
  if (/[cC]/.test(conversion.letter)) {
    return fill(conversion, '', String.fromCharCode(Number(BigInt.asUintN(8, value))), false);
  }
  const signed = /[di]/.test(conversion.letter);
  const number = signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  const base = { o: 8, x: 16, X: 16 }[conversion.letter] ?? 10;
  let digits = (number < 0n ? -number : number).toString(base);
  if (conversion.precision !== undefined) digits = digits.padStart(conversion.precision, '0');
  if (conversion.precision === 0 && number === 0n) digits = '';
  if (conversion.flags.includes('#') && number !== 0n) digits = ({ 8: '0', 16: '0x' }[base] ?? '') + digits;
  if (conversion.letter === 'X') digits = digits.toUpperCase();
  return fill(conversion, signed ? signOf(conversion, number < 0n) : '', digits, conversion.precision === undefined);
}

/** value × 10^power rounded to a whole number, exact ties to even, as in C (toFixed rounds them up). */
function scaled(value: number, power: number): bigint {
  let exponent = 0;
  let mantissa = value;
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    exponent++;
  }
  const top = BigInt(mantissa) * 10n ** BigInt(Math.max(power, 0));
  const bottom = 2n ** BigInt(exponent) * 10n ** BigInt(Math.max(-power, 0));
  const whole = top / bottom;
  const rest = 2n * (top % bottom);
  const up = rest > bottom || (rest === bottom && whole % 2n === 1n);
  return up ? whole + 1n : whole;
}

function point(digits: string, decimals: number, alternate: boolean): string {
  if (decimals === 0) return alternate ? `${digits}.` : digits;
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

function fixed(value: number, precision: number, alternate: boolean): string {
  const digits = scaled(value, precision).toString();
  return point(digits.padStart(precision + 1, '0'), precision, alternate);
}

function significant(value: number, precision: number): { digits: string; exponent: number } {
  if (value === 0) return { digits: '0'.repeat(precision + 1), exponent: 0 };
  // A double's shortest text may be rounded up to the next power of ten, so start with an exponent one lower.
  let exponent = Number(value.toExponential().split('e')[1]) - 1;
  let digits = scaled(value, precision - exponent).toString();
  if (digits.length > precision + 1) {
    exponent++;
    digits = scaled(value, precision - exponent).toString();
  }
  // Rounding up 99…9 gives a power of ten with one digit too many.
  if (digits.length > precision + 1) return { digits: digits.slice(0, -1), exponent: exponent + 1 };
  return { digits, exponent };
}

function exponential(value: number, precision: number, alternate: boolean): string {
  const { digits, exponent } = significant(value, precision);
  const power = String(Math.abs(exponent)).padStart(2, '0');
  return `${point(digits, precision, alternate)}e${exponent < 0 ? '-' : '+'}${power}`;
}

function general(value: number, wanted: number, alternate: boolean): string {
  const precision = Math.max(wanted, 1);
  const { exponent } = significant(value, precision - 1);
  const text =
    exponent < -4 || exponent >= precision
      ? exponential(value, precision - 1, alternate)
      : fixed(value, precision - 1 - exponent, alternate);
  if (alternate || !text.includes('.')) return text;
  const [mantissa = '', power] = text.split('e');
  const short = mantissa.replace(/\.?0+$/, '');
  return power === undefined ? short : `${short}e${power}`;
}

/** The most decimals that a double can have. */
const MOST_DIGITS = 1074;

function hexadecimal(value: number): string {
  if (value === 0) return '0x0p+0';
  let exponent = Math.max(Math.floor(Math.log2(value)), -1022);
  if (value / 2 ** exponent >= 2) exponent++;
  if (value / 2 ** exponent < 1 && exponent > -1022) exponent--;
  const mantissa = value / 2 ** exponent;
  const whole = Math.floor(mantissa);
  const fraction = BigInt(Math.round((mantissa - whole) * 2 ** 52))
    .toString(16)
    .padStart(13, '0')
    .replace(/0+$/, '');
  return `0x${whole}${fraction === '' ? '' : `.${fraction}`}p${exponent < 0 ? '-' : '+'}${Math.abs(exponent)}`;
}

function printReal(conversion: Conversion, value: number): string {
  const size = Math.abs(value);
  const letter = conversion.letter.toLowerCase();
  const precision = Math.min(conversion.precision ?? 6, MOST_DIGITS);
  const alternate = conversion.flags.includes('#');
  let digits: string;
  if (Number.isNaN(value)) digits = 'nan';
  else if (size === Infinity) digits = 'inf';
  else if (letter === 'f') digits = fixed(size, precision, alternate);
  else if (letter === 'e') digits = exponential(size, precision, alternate);
  else if (letter === 'g') digits = general(size, precision, alternate);
  else digits = hexadecimal(size);
  if (conversion.letter !== letter) digits = digits.toUpperCase();
  return fill(conversion, signOf(conversion, value < 0 || Object.is(value, -0)), digits, Number.isFinite(value));
}

/** C's printf for one value, in a format that `isFormat` accepts. */
export function printf(format: string, value: bigint | number | string): string {
  return format.replace(CONVERSION, (text, ...groups: string[]) => {
    if (groups[4] === '%') return '%';
    const conversion = conversions(text)[0];
    if (!conversion) return text;
    if (typeof value === 'bigint') return printInt(conversion, value);
    if (typeof value === 'number') return printReal(conversion, value);
    return fill(conversion, '', value.slice(0, conversion.precision ?? value.length), false);
  });
}
