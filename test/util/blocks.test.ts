import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { blocksOf } from '../../src/util/blocks.ts';

const FILE = randomBytes(10_001);
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'gry-blocks-'));
  writeFileSync(join(dir, 'file'), FILE);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

it.each([0, 1, 9000, 10_001, 20_000])('yields all from byte %i on, in two blocks of memory', async (from) => {
  const file = await open(join(dir, 'file'), 'r');
  const [got, memories]: [Buffer[], Set<ArrayBufferLike>] = [[], new Set()];
  for await (const block of blocksOf(file, from, 1000)) {
    got.push(Buffer.from(block));
    memories.add(block.buffer);
  }
  await file.close();
  expect(Buffer.concat(got).equals(FILE.subarray(from))).toBe(true);
  expect(memories.size).toBeLessThanOrEqual(2);
});

it('reads nothing any more after whoever reads has stopped', async () => {
  let under = 0;
  const file = {
    read: async () => {
      under += 1;
      await new Promise(setImmediate);
      under -= 1;
      return { bytesRead: 1000, buffer: FILE };
    },
  };
  for await (const block of blocksOf(file as never, 0, 1000)) if (block.length > 0) break;
  expect(under).toBe(0);
});

it('rejects if a read fails', async () => {
  const file = await open(join(dir, 'file'), 'r');
  await file.close();
  await expect(blocksOf(file).next()).rejects.toMatchObject({ code: 'EBADF' });
});
