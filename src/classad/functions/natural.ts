import { toBytes } from '../bytes.ts';

function isDigit(char: string): boolean {
  return char >= '0' && char <= '9' && char.length === 1;
}

/** The value of a byte as a signed char, 0 past the end. */
function charValue(text: string, at: number): number {
  const code = at < text.length ? text.charCodeAt(at) : 0;
  return code > 127 ? code - 256 : code;
}

function runOf(text: string, from: number, test: (char: string) => boolean): number {
  let at = from;
  while (test(text.charAt(at))) at += 1;
  return at;
}

/**
 * Version order (as strverscmp(3)): numbers in the texts compare as numbers, and one with more leading zeros comes
 * first. The result's size is the difference of the first differing bytes, or of the numbers' lengths.
 */
export function naturalCompare(first: string, second: string): number {
  const a = toBytes(first);
  const b = toBytes(second);
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  const difference = charValue(a, at) - charValue(b, at);
  if (difference === 0) return 0;
  let start = at;
  while (start > 0 && isDigit(a.charAt(start - 1))) start -= 1;
  if (start === at && !(isDigit(a.charAt(at)) && isDigit(b.charAt(at)))) return difference;
  const zerosA = leadingZeros(a, start);
  const zerosB = leadingZeros(b, start);
  if (zerosA !== zerosB) return zerosB - zerosA;
  if (zerosA > 0) return difference;
  const lengthA = runOf(a, start, isDigit) - start;
  const lengthB = runOf(b, start, isDigit) - start;
  return lengthA === lengthB ? difference : lengthA - lengthB;
}

/** The zeros before the number that begins at `start`; its last digit is never one of them. */
function leadingZeros(text: string, start: number): number {
  const end = runOf(text, start, (char) => char === '0');
  return end > start && !isDigit(text.charAt(end)) ? end - start - 1 : end - start;
}
