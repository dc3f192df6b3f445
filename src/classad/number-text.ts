/**
 * Digits and exponent of a finite float, correctly rounded to `digits` significant digits, halves to even (as C does).
 */
function scientific(value: number, digits: number): { mantissa: string; exponent: number; sign: string } {
  let text = Math.abs(value).toExponential(digits - 1);
  // JavaScript rounds an exact half up, which only differs from C if the digit before it is even.
  const exact = Math.abs(value).toExponential(Math.min(100, digits + 40));
  const tail = exact.slice(exact.indexOf('.') + digits, exact.indexOf('e'));
  if (/^50*$/.test(tail)) {
    const kept = exact.slice(0, exact.indexOf('.') + digits).replace(/\.$/, '');
    if (Number(kept.at(-1)) % 2 === 0) text = kept + exact.slice(exact.indexOf('e'));
  }
  const [mantissa = '', exponent = '0'] = text.split('e');
  return { mantissa, exponent: Number(exponent), sign: value < 0 || Object.is(value, -0) ? '-' : '' };
}

function exponentText(exponent: number): string {
  return `${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** C's `%.<precision>g` for finite numbers, with the given letter for `e`. */
export function formatGeneral(value: number, precision: number, letter: 'e' | 'E' = 'e'): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const { mantissa, exponent, sign } = scientific(value, precision);
  const digits = mantissa.replace('.', '');
  if (exponent < -4 || exponent >= precision) {
    const short = trimZeros(mantissa);
    return `${sign}${short}${letter}${exponentText(exponent)}`;
  }
  if (exponent < 0) return `${sign}${trimZeros(`0.${'0'.repeat(-exponent - 1)}${digits}`)}`;
  const whole = digits.slice(0, exponent + 1);
  return sign + trimZeros(`${whole}.${digits.slice(exponent + 1)}`);
}

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0*$/, '') : text;
}

/** C's `%1.15E`, for finite numbers. */
export function formatExponent(value: number): string {
  const { mantissa, exponent, sign } = scientific(value, 16);
  return `${sign}${mantissa}E${exponentText(exponent)}`;
}

/** A real as the tools print it (`%.16G`, with `.0` added if it would look like an integer). */
export function oldReal(value: number): string {
  const special = specialReal(value);
  if (special !== undefined) return special;
  const text = formatGeneral(value, 16, 'E');
  return /[.E]/.test(text) ? text : `${text}.0`;
}

/** A real in the new syntax (`%1.15E`). */
export function newReal(value: number): string {
  return specialReal(value) ?? formatExponent(value);
}

function specialReal(value: number): string | undefined {
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  if (Number.isNaN(value)) return 'real("NaN")';
  if (!Number.isFinite(value)) return value > 0 ? 'real("INF")' : 'real("-INF")';
  return undefined;
}

/** What C's strtod reads at the beginning of a text; `undefined` if there is no number. */
export function readDouble(text: string): number | undefined {
  const found =
    /^[ \t\n\v\f\r]*([+-]?)(?:0[xX]([0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)(?:[pP]([+-]?[0-9]+))?|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(inf(?:inity)?)|nan)/i.exec(
      text,
    );
  if (found === null) return undefined;
  const [, sign, hex, power, decimal, infinite] = found;
  const size =
    hex !== undefined
      ? readHex(hex) * 2 ** Number(power ?? 0)
      : decimal !== undefined
        ? Number(decimal)
        : infinite !== undefined
          ? Number.POSITIVE_INFINITY
          : Number.NaN;
  return sign === '-' ? -size : size;
}

function readHex(text: string): number {
  const [whole = '', fraction = ''] = text.split('.');
  let value = 0;
  for (const digit of whole) value = value * 16 + Number.parseInt(digit, 16);
  let unit = 1;
  for (const digit of fraction) {
    unit /= 16;
    value += Number.parseInt(digit, 16) * unit;
  }
  return value;
}
