import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SLOW } from '../slow.ts';
import { lineEnd, readChirpLine } from '../../src/io-proxy/chirp-line.ts';

const RUNS = { numRuns: SLOW ? 1_000_000 : 2000 };

/** As condor_chirp writes a word. */
const escaped = (word: string) => word.replaceAll(/[ \t\n\r\\]/g, '\\$&');

it('gives back the words that a client wrote, whatever is in them', () => {
  const word = fc
    .string({ minLength: 1, unit: 'grapheme' })
    .filter((one) => !one.includes('\uFFFD') && !/[\v\f]/.test(one));
  fc.assert(
    fc.property(word, word, fc.integer({ min: -1e9, max: 1e9 }), (one, other, n) => {
      const bytes = Buffer.from(`open ${escaped(one)} ${escaped(other)} ${n}\nnext`);
      const end = lineEnd(bytes);
      expect(bytes.subarray(end).toString()).toBe('\nnext');
      expect(readChirpLine(bytes.subarray(0, end))).toEqual({ verb: 'open', words: [one, other], numbers: [n] });
    }),
    { numRuns: 2000 },
  );
});

it('takes no line for a request that is none, and never throws', () => {
  const verbs = fc.constantFrom(
    'open',
    'read',
    'set_job_attr',
    'constructor',
    '__proto__',
    'toString',
    '',
    'cookie',
    'version',
  );
  fc.assert(
    fc.property(verbs, fc.uint8Array({ maxLength: 40 }), (verb, rest) => {
      const request = readChirpLine(Buffer.concat([Buffer.from(`${verb} `), rest]));
      if (request === undefined) return;
      expect(request.verb).toBe(verb);
      expect(request.numbers.every((n) => Number.isSafeInteger(n))).toBe(true);
    }),
    RUNS,
  );
  expect(readChirpLine(Buffer.from('constructor x'))).toBeUndefined();
  expect(readChirpLine(Buffer.from('read 1'))).toBeUndefined();
  expect(readChirpLine(Buffer.from('read 1 x'))).toBeUndefined();
});
