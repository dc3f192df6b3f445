import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  children,
  readBits,
  readDer,
  readInteger,
  readOid,
  readOne,
  readTime,
  TAG,
} from '../../src/credentials/x509/der.ts';
import { bits, integer, octets, oid, sequence, time } from '../../src/credentials/x509/der-write.ts';
import { GryphusError } from '../../src/errors.ts';

describe('DER', () => {
  it('reads back what it wrote: numbers, identifiers, times, lengths', () => {
    const dotted = fc
      .tuple(fc.nat(2), fc.nat(39), fc.array(fc.bigInt({ min: 0n, max: 1n << 70n }), { maxLength: 8 }))
      .map(([top, second, rest]) => [top, second, ...rest].join('.'));
    const number = fc.bigInt({ min: 0n, max: 1n << 200n });
    const seconds = fc.integer({ min: -631_152_000, max: 32_503_680_000 });
    fc.assert(
      fc.property(dotted, number, seconds, fc.uint8Array({ maxLength: 70_000 }), (id, value, at, bytes) => {
        const whole = readOne(sequence(oid(id), integer(value), time(at), octets(bytes), bits(bytes)), TAG.sequence);
        const [first, second, third, fourth, fifth] = children(whole);
        expect(readOid(first)).toBe(id);
        expect(readInteger(second)).toBe(value);
        expect(readTime(third)).toBe(at);
        expect(Buffer.from(fourth?.content ?? []).equals(bytes)).toBe(true);
        expect(Buffer.from(readBits(fifth)).equals(bytes)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    [[0x02, 0x01, 0xff], -1n],
    [[0x02, 0x02, 0x00, 0xff], 255n],
    [[0x02, 0x01, 0x80], -128n],
  ])('reads the integer %j', (given, value) => {
    expect(readInteger(readDer(Buffer.from(given)))).toBe(value);
  });

  it('reads any bytes, or says that they are damaged', () => {
    const walk = (bytes: Uint8Array, depth: number): number =>
      children(readDer(bytes)).reduce(
        (sum, one) => sum + (depth > 0 && one.tag === TAG.sequence ? walk(one.raw, depth - 1) : 1),
        0,
      );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        let problem: unknown;
        try {
          walk(bytes, 5);
        } catch (error) {
          problem = error;
        }
        expect(problem === undefined || problem instanceof GryphusError).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
