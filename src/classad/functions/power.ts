/*
 * C's pow(), correctly rounded except in the rarest cases: JavaScript's `**` is wrong in the last digit for one in six
 * operands, which shows when 16 digits are printed. Uses fixed-point arithmetic of 200 bits; pow() is not
 * performance-critical.
 */
const BITS = 200n;
const ONE = 1n << BITS;

/** A positive float as `mantissa * 2 ** exponent`, with an odd mantissa. */
function parts(value: number): { mantissa: bigint; exponent: number } {
  let exponent = 0;
  let scaled = value;
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    exponent -= 1;
  }
  let mantissa = BigInt(scaled);
  while ((mantissa & 1n) === 0n) {
    mantissa >>= 1n;
    exponent += 1;
  }
  return { mantissa, exponent };
}

/** ln(value / 2^BITS) for values near ONE, by the series for atanh. */
function log(value: bigint): bigint {
  const z = ((value - ONE) << BITS) / (value + ONE);
  const square = (z * z) >> BITS;
  let sum = 0n;
  let term = z;
  for (let n = 1n; term !== 0n && term !== -1n; n += 2n) {
    sum += term / n;
    term = (term * square) >> BITS;
  }
  return 2n * sum;
}

/** ln 2 = 2 ln(√2): with 7/5 for √2, 2 ln(7/5) + ln(50/49). */
const LN2 = 2n * log((ONE * 7n) / 5n) + log((ONE * 50n) / 49n);

function exp(value: bigint): bigint {
  let sum = ONE;
  let term = ONE;
  for (let n = 1n; term !== 0n && term !== -1n; n += 1n) {
    term = ((term * value) >> BITS) / n;
    sum += term;
  }
  return sum;
}

/** `value * 2 ** exponent` rounded to the nearest float. */
function toFloat(value: bigint, exponent: number): number {
  // Surplus bits are cut off; the last remaining bit records whether any of them was set.
  const spare = Math.max(0, value.toString(16).length * 4 - 4 * Number(BITS));
  const cut = value >> BigInt(spare);
  const sticky = spare > 0 && cut << BigInt(spare) !== value ? 1n : 0n;
  const power = exponent + spare;
  const half = Math.trunc(power / 2);
  return Number(cut | sticky) * 2 ** half * 2 ** (power - half);
}

function positivePower(base: number, exponent: number): number {
  const { mantissa, exponent: scale } = parts(base);
  if (Number.isInteger(exponent) && Math.abs(exponent) <= 2000) {
    const whole = mantissa ** BigInt(Math.abs(exponent));
    if (exponent >= 0) return toFloat(whole, scale * exponent);
    const bits = whole.toString(2).length + 130;
    return toFloat((1n << BigInt(bits)) / whole, scale * exponent - bits);
  }
  const length = mantissa.toString(2).length;
  const ln = log((mantissa << BITS) >> BigInt(length - 1)) + BigInt(scale + length - 1) * LN2;
  const by = parts(Math.abs(exponent));
  const product = ln * by.mantissa * (exponent < 0 ? -1n : 1n);
  const total = by.exponent >= 0 ? product << BigInt(by.exponent) : product >> BigInt(-by.exponent);
  const turns = total / LN2;
  return toFloat(exp(total - turns * LN2), Number(turns - BITS));
}

/** `base` to the power of `exponent`. As in C, 1 to any power is 1, and so is -1 to an infinite one. */
export function power(base: number, exponent: number): number {
  if (base === 1 || (base === -1 && Math.abs(exponent) === Number.POSITIVE_INFINITY)) return 1;
  const rough = base ** exponent;
  if (!Number.isFinite(rough) || rough === 0 || exponent === 0 || Math.abs(rough) < 1e-300) return rough;
  const size = positivePower(Math.abs(base), exponent);
  return rough < 0 ? -size : size;
}
