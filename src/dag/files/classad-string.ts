const NAMED: Readonly<Record<number, string>> = {
  8: '\\b',
  9: '\\t',
  10: '\\n',
  12: '\\f',
  13: '\\r',
  34: '\\"',
  92: '\\\\',
};

const encoder = new TextEncoder();

/**
 * `text` as a ClassAd string literal printed as DAGMan does: bytes that are not printable ASCII become octal escapes.
 */
export function classadString(text: string): string {
  if (/^[ !#-[\]-~]*$/.test(text)) return `"${text}"`;
  let literal = '"';
  for (const byte of encoder.encode(text)) {
    const named = NAMED[byte];
    if (named !== undefined) literal += named;
    else if (byte < 32 || byte > 126) literal += `\\${byte.toString(8).padStart(3, '0')}`;
    else literal += String.fromCharCode(byte);
  }
  return `${literal}"`;
}
