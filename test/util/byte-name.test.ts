import fc from 'fast-check';
import { expect, it } from 'vitest';
import { nameBytes, nameText } from '../../src/util/byte-name.ts';

it('writes a name of any bytes as text, and finds the bytes again', () => {
  expect(nameText(Buffer.from([0xff, 0xfe, 0x62, 0xc3, 0xa9, 0xc3]))).toBe('%FF%FEb\u00e9%C3');
  expect(nameBytes('plain %20 \u00e9')).toBeUndefined();
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 20 }), (bytes) => {
      const name = Buffer.from(bytes);
      const text = nameText(name);
      // A name that itself contains such a word is found under its own spelling first.
      fc.pre(!name.includes('%'));
      expect(nameBytes(text) ?? Buffer.from(text)).toEqual(name);
    }),
  );
});
