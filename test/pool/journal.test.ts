import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { Journal } from '../../src/pool/host/journal.ts';
import { removeTree } from '../remove-tree.ts';

const dir = mkdtempSync('/tmp/gry-journal-');
afterAll(() => removeTree(dir));
const ENTRY = z.strictObject({ n: z.number() });
let files = 0;

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
    appendFileSync(path, '{"n":');
    expect(numbersOf(path)).toEqual([1, 2, 3]);
  });

  it('ignores garbage in its last write, which was not acknowledged', async () => {
    const path = await written([1], [2, 3, 4]);
    damage(path, 3);
    expect(numbersOf(path)).toEqual([1, 2, 4]);
    damage(path, 2);
    expect(() => numbersOf(path)).not.toThrow();
  });

  it('refuses to be read if an acknowledged record is damaged, and says which, and what to do', async () => {
    const path = await written([1, 2], [3]);
    damage(path, 2);
    expect(() => numbersOf(path)).toThrow(
      expect.objectContaining({
        code: 'state-version',
        message: `Line 2 of the pool's journal ${path} is damaged, or of another version of gryphus: it is not JSON.`,
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
    expect(readFileSync(path, 'utf8').split('\n')[0]).toBe('{"journal":1}');
    damage(path, 2);
    expect(() => numbersOf(path)).toThrow(/Line 2 of the pool's journal/);
  });

  it('of a newer version is refused, and one of before versions is read', async () => {
    const path = await written([1]);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, `{"journal":1}\n${text}`);
    expect(numbersOf(path)).toEqual([1]);
    writeFileSync(path, `{"journal":2}\n${text}`);
    expect(() => numbersOf(path)).toThrow(/was written by a newer Gryphus \(journal version 2, this one supports 1\)/);
  });
});
