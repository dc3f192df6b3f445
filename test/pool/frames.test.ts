import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameReader, type WireMessage } from '../../src/pool/wire/frames.ts';

describe('frames', () => {
  it('come out as they went in, however they are cut', () => {
    const message = fc.record({ t: fc.string({ unit: 'binary' }), x: fc.jsonValue() });
    const frames = fc.array(fc.tuple(message, fc.uint8Array({ maxLength: 300 })), { maxLength: 8 });
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1 }), (all, cuts) => {
        const wire = Buffer.concat(all.flatMap(([one, bytes]) => encodeFrame(one, bytes)));
        const read: [WireMessage, Buffer][] = [];
        const reader = new FrameReader((one, bytes) => read.push([one, Buffer.from(bytes)]));
        for (let at = 0, i = 0; at < wire.length; i++) {
          const end = at + (cuts[i % cuts.length] ?? 1);
          reader.push(wire.subarray(at, end));
          at = end;
        }
        expect(read).toEqual(all.map(([one, bytes]) => [JSON.parse(JSON.stringify(one)), Buffer.from(bytes)]));
      }),
    );
  });

  it('are refused where they are none', () => {
    const reader = () => new FrameReader(() => undefined);
    expect(() => reader().push(Buffer.alloc(8, 0xff))).toThrow('too long');
    expect(() => reader().push(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toThrow('too long');
    const json = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length, 0, 0, 0, 0]), Buffer.from(text)]);
    expect(() => reader().push(json('{"u":1}'))).toThrow('not a message');
    expect(() => reader().push(json('{"t":'))).toThrow('not JSON');
  });
});
