import { isUtf8 } from 'node:buffer';

/** A file's name as text: bytes that are not UTF-8 become `%XX`, so that two names never become one. */
export function nameText(name: Buffer): string {
  if (isUtf8(name)) return name.toString('utf8');
  let text = '';
  for (let at = 0; at < name.length; ) {
    const length = [1, 2, 3, 4].find((n) => at + n <= name.length && isUtf8(name.subarray(at, at + n))) ?? 0;
    text += length > 0 ? name.toString('utf8', at, at + length) : `%${name.toString('hex', at, at + 1).toUpperCase()}`;
    at += Math.max(1, length);
  }
  return text;
}

/** The bytes of such a name; `undefined` if they are those of the text. */
export function nameBytes(text: string): Buffer | undefined {
  const parts = text.split(/%([89A-F][0-9A-F])/);
  if (parts.length === 1) return undefined;
  return Buffer.concat(parts.map((part, i) => Buffer.from(part, i % 2 === 0 ? 'utf8' : 'hex')));
}
