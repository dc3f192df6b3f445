import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Journal, journalOrigin } from '../../src/pool/host/journal.ts';
import { removeTree } from '../remove-tree.ts';

const dir = mkdtempSync('/tmp/gry-journal-');
afterAll(() => removeTree(dir));
const ENTRY = z.strictObject({ n: z.number() });
let files = 0;
/** The head, and the end of the write in which the file began. */
const LINES_BEFORE = 2;

/** A journal with these writes, each of which was on disk before the next began. */
async function written(...writes: readonly (readonly number[])[]): Promise<string> {
  const path = join(dir, `journal-${++files}`);
  const journal = new Journal<{ n: number }>(path, (error) => {
    throw error;
  });
  for (const numbers of writes) {
    for (const n of numbers) journal.add({ n });
    await new Promise<void>((saved) => journal.whenSaved(saved));
  }
  journal.close();
  return path;
}

const numbersOf = (path: string): number[] => Journal.read(path, ENTRY).map(({ n }) => n);

function damage(path: string, line: number): void {
  const lines = readFileSync(path, 'utf8').split('\n');
  lines[line - 1] = '\0'.repeat(8);
  writeFileSync(path, lines.join('\n'));
}

describe('the journal of the pool', () => {
  it('has what was written, without a last line that is incomplete', async () => {
    const path = await written([1, 2], [3]);
    appendFileSync(path, ' 01234567 {"n":');
    expect(numbersOf(path)).toEqual([1, 2, 3]);
  });

  it('has one origin as long as each file takes the place of the one before, and another after one was moved away', async () => {
    const path = await written([1]);
    const origin = journalOrigin(path);
    const again = () => {
      const journal = new Journal<{ n: number }>(path, () => undefined, [{ n: 2 }]);
      journal.rewrite([{ n: 3 }]);
      journal.close();
      return journalOrigin(path);
    };
    expect(origin).toMatch(/^[\w-]{12}$/);
    expect(again()).toBe(origin);
    renameSync(path, `${path}.damaged`);
    expect(journalOrigin(path)).toBe(undefined);
    expect(again()).not.toBe(origin);
    writeFileSync(path, '{"journal":2,"id":"abcdefghijkl"}\n');
    expect(journalOrigin(path)).toBe(undefined);
  });

  it('ignores garbage in its last write if it was not acknowledged, and what follows it', async () => {
    const path = await written([1], [2, 3, 4]);
    // As after a power failure: what was acknowledged last is not known.
    rmSync(`${path}.acknowledged`);
    damage(path, LINES_BEFORE + 3);
    expect(numbersOf(path)).toEqual([1, 2]);
    damage(path, LINES_BEFORE + 2);
    expect(numbersOf(path)).toEqual([1]);
  });

  it('refuses to be read with any bit flipped, or cut anywhere, since each line was acknowledged', async () => {
    const path = await written([1], [22, 3]);
    const bytes = readFileSync(path);
    const change = (to: Uint8Array) => {
      writeFileSync(path, to);
      return () => numbersOf(path);
    };
    for (let at = 0; at < bytes.length; at++)
      for (let bit = 0; bit < 8; bit++) {
        const flipped = Buffer.from(bytes);
        flipped[at] = (bytes[at] ?? 0) ^ (1 << bit);
        expect(change(flipped), `bit ${bit} of byte ${at}`).toThrow(/(Line \d+ of t|T)he pool's journal/);
      }
    for (let at = 0; at < bytes.length; at++) {
      expect(change(bytes.subarray(0, at)), `cut to ${at} bytes`).toThrow(
        /Line \d+ of the pool's journal \S+ is missing/,
      );
      expect(change(Buffer.from(bytes).fill(0, at)), `a hole from ${at}`).toThrow(/Line \d+ of the pool's journal/);
    }
    expect(change(bytes)()).toEqual([1, 22, 3]);
  });

  it('is read if it was rewritten, and the process was killed before it said what of that was acknowledged', async () => {
    const path = await written([1, 2, 3, 4]);
    const before = readFileSync(`${path}.acknowledged`);
    new Journal<{ n: number }>(path, () => undefined, [{ n: 7 }]).close();
    writeFileSync(`${path}.acknowledged`, before);
    expect(numbersOf(path)).toEqual([7]);
    writeFileSync(`${path}.acknowledged`, '');
    expect(numbersOf(path)).toEqual([7]);
  });

  it('refuses to be read if an acknowledged record is damaged, and says which, and what to do', async () => {
    const path = await written([1, 2], [3]);
    damage(path, 4);
    expect(() => numbersOf(path)).toThrow(
      expect.objectContaining({
        code: 'state-version',
        message: `Line 4 of the pool's journal ${path} is damaged: its check sum is wrong.`,
        suggestions: [expect.stringContaining('move it elsewhere: the jobs that were in the pool are then held')],
      }),
    );
  });

  it('keeps what it had when it was rewritten as acknowledged', async () => {
    const path = await written([1, 2]);
    const journal = new Journal<{ n: number }>(path, () => undefined);
    journal.rewrite([{ n: 7 }, { n: 8 }]);
    expect(numbersOf(path)).toEqual([7, 8]);
    journal.add({ n: 9 });
    await new Promise<void>((saved) => journal.whenSaved(saved));
    expect(numbersOf(path)).toEqual([7, 8, 9]);
    journal.rewrite([{ n: 7 }, { n: 8 }]);
    journal.close();
    damage(path, 2);
    expect(() => numbersOf(path)).toThrow(/Line 2 of the pool's journal/);
  });

  it('of a newer version is refused, and those of older versions are read, which had no check sums', () => {
    const path = join(dir, 'of-versions');
    const text = ' {"n":1}\n{"n":2}\n {"n":3}\n';
    writeFileSync(path, text);
    expect(numbersOf(path)).toEqual([1, 2, 3]);
    writeFileSync(path, `{"journal":1}\n${text}`);
    expect(numbersOf(path)).toEqual([1, 2, 3]);
    writeFileSync(path, `{"journal":1}\n${text.replace('1', '\0')}`);
    expect(() => numbersOf(path)).toThrow(
      /Line 2 of the pool's journal \S+ is damaged, or of another version .*: it is not JSON/,
    );
    writeFileSync(path, `{"journal":3}\n${text}`);
    expect(() => numbersOf(path)).toThrow(/was written by a newer Gryphus \(journal version 3, this one supports 2\)/);
  });
});
