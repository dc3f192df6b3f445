import { describe, expect, it } from 'vitest';
import { blocksOf, cutOf } from '../../src/commands/map-pipe.ts';

const STDIN = { at: 0, lists: [{ from: 'files', words: ['-'], linked: false }] } as const;

/** Blocks of a text that arrives in pieces of so many bytes. */
async function blocks(text: string, flags: Omit<Parameters<typeof cutOf>[0], 'pipe'>, piece = 3): Promise<string[]> {
  const cut = cutOf({ pipe: true, ...flags }, STDIN);
  if (cut === undefined) throw new Error('no cut');
  const bytes = Buffer.from(text);
  async function* stream() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
  }
  const found: string[] = [];
  for await (const block of blocksOf(stream(), cut)) found.push(block.toString());
  return found;
}

describe('the blocks of --pipe', () => {
  it('are of whole lines up to their size, a longer line alone, and the end as it is', async () => {
    for (const piece of [1, 3, 100])
      expect(await blocks('a\nbb\nccccccccc\nd\ne', { block: '6' }, piece)).toEqual(['a\nbb\n', 'ccccccccc\n', 'd\ne']);
    expect(await blocks('', { block: '6' })).toEqual([]);
  });

  it('are of so many records', async () => {
    for (const piece of [1, 4, 100])
      expect(await blocks('1\n2\n3\n4\n5\n', { 'max-replace-args': 2 }, piece)).toEqual(['1\n2\n', '3\n4\n', '5\n']);
  });

  it('have records that begin or end with a text', async () => {
    expect(await blocks('>a\nAC\n>b\nG\n>c\nT\n', { recstart: '>', 'max-replace-args': 1 }, 2)).toEqual([
      '>a\nAC\n',
      '>b\nG\n',
      '>c\nT\n',
    ]);
    expect(await blocks('a;b;c', { recend: ';', 'max-args': 1 }, 1)).toEqual(['a;', 'b;', 'c']);
    expect(await blocks('a\0b\0', { recend: '\\0', 'max-args': 1 })).toEqual(['a\0', 'b\0']);
  });

  it('lose and repeat nothing', async () => {
    const text = Array.from({ length: 400 }, (_, i) => `${'x'.repeat((i * 7) % 23)}${i}\n`).join('');
    for (const flags of [{ block: '50' }, { block: '1k' }, { 'max-replace-args': 7 }])
      for (const piece of [1, 17, 4096]) expect((await blocks(text, flags, piece)).join('')).toBe(text);
  });

  it('are refused in a sentence where they make no sense', () => {
    expect(() => cutOf({ pipe: true, block: '0' }, STDIN)).toThrow('--block cannot be "0"');
    expect(() => cutOf({ pipe: false, block: '1M' }, STDIN)).toThrow('--block is about --pipe');
    const words = { at: 0, lists: [{ from: 'words', words: ['a'], linked: false }] } as const;
    expect(() => cutOf({ pipe: true }, words)).toThrow('no list of inputs');
  });
});
