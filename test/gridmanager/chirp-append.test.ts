import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { RequestJournal } from '../../src/gridmanager/chirp/journal.ts';
import { appendOnce } from '../../src/gridmanager/chirp/once.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'append-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** What a file has after an append that comes again, and was to begin at its start. */
async function again(there: Uint8Array, bytes: Uint8Array): Promise<Buffer> {
  const path = join(dir, 'file');
  writeFileSync(path, there);
  const file = await open(path, 'a+');
  await appendOnce({ before: { n: 1, call: 'append', size: 0 }, intend: () => undefined }, file, bytes);
  await file.close();
  return readFileSync(path);
}

describe('an append that comes again', () => {
  it('writes what has not arrived: nothing if all of it is there, else what is behind its longest beginning at the end', async () => {
    const text = fc.array(fc.constantFrom(97, 98), { maxLength: 12 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(text, text, async (there, bytes) => {
        let arrived = there.includes(bytes) ? bytes.length : Math.min(there.length, bytes.length - 1);
        while (arrived < bytes.length && !there.subarray(there.length - arrived).equals(bytes.subarray(0, arrived)))
          arrived--;
        expect(await again(there, bytes)).toEqual(Buffer.concat([there, bytes.subarray(arrived)]));
      }),
      { numRuns: 300 },
    );
  });

  it('does not take long, whatever it is and whatever is there', async () => {
    const size = 1 << 20;
    const there = Buffer.alloc(size, 'a');
    there[size - 1] = 99;
    const wanted = Buffer.alloc(size, 'a');
    const began = performance.now();
    expect(await again(there, wanted)).toHaveLength(2 * size);
    // Compared length by length, it takes a minute.
    expect(performance.now() - began).toBeLessThan(5000);
  }, 120_000);
});

it('a site does not fill the disk with names of connections, and those that are known go on', () => {
  const journal = new RequestJournal(join(dir, 'requests'));
  const write = (session: string, n = 1) =>
    journal.once({ op: 'append', words: [], numbers: [], session, n, again: false }, 'append').intend({ size: n });
  let refused = 0;
  for (let n = 0; n < 5000; n++) {
    try {
      write(`session.${n}`);
    } catch (thrown) {
      expect(thrown).toMatchObject({ code: 'ENOSPC' });
      refused += 1;
    }
  }
  expect([readdirSync(join(dir, 'requests')).length, refused]).toEqual([4096, 904]);
  write('session.1', 2);
  const again = { op: 'append', words: [], numbers: [], session: 'session.1', n: 2, again: true } as const;
  expect(journal.once({ ...again, words: [], numbers: [] }, 'append').before).toMatchObject({ n: 2, size: 2 });
}, 60_000);
