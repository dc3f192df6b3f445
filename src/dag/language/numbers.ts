const LEADING = /^\s*([+-]?\d+)/;
const INT_MAX = 2_147_483_647;

/**
 * The integer at the beginning of `word`, whatever follows it: `1.5` is 1 (as with C++ `std::stoi`, which DAGMan uses).
 * `undefined` if there is none or it does not fit in 32 bits.
 */
export function leadingInteger(word: string): number | undefined {
  const found = LEADING.exec(word);
  if (found?.[1] === undefined) return undefined;
  const value = Number(found[1]);
  return value > INT_MAX || value < -INT_MAX - 1 ? undefined : value;
}
