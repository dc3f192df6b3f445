/** Of CRC-32 as zlib has it. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});
/** The byte whose entry in the table has this top byte; each has another. */
const BY_TOP = new Uint8Array(256);
for (const [byte, sum] of TABLE.entries()) BY_TOP[sum >>> 24] = byte;

/**
 * Every change of one byte that turns the CRC-32 of `length` bytes into another, where `difference` is both sums' exclusive or: xor
 * `bits` into the byte `at` (from 0). A CRC is linear, so one walk backwards over the bytes finds them all.
 */
export function* oneByteChanges(
  length: number,
  difference: number,
): Generator<{ readonly at: number; readonly bits: number }> {
  let state = difference >>> 0;
  for (let at = length - 1; at >= 0; at--) {
    const byte = BY_TOP[state >>> 24] ?? 0;
    const entry = TABLE[byte] ?? 0;
    if (entry === state && byte !== 0) yield { at, bits: byte };
    // As it was before one more zero byte.
    state = (((state ^ entry) << 8) | byte) >>> 0;
  }
}
