import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Arriving } from '../../src/util/arriving.ts';
import { startWritingThread } from '../../src/util/writing-thread.ts';

const MB = 1 << 20;
const FILE = randomBytes(9 * MB + 17);
const DIGEST = createHash('sha256').update(FILE).digest('hex');

let path = '';
let file: FileHandle;
beforeEach(async () => {
  path = join(mkdtempSync(join(tmpdir(), 'gry-arriving-')), 'file');
  file = await open(path, 'w');
});
afterEach(async () => {
  await file.close();
  rmSync(join(path, '..'), { recursive: true });
});

/** Through memory that is used again at once. */
async function bring(arriving: Arriving, from = 0): Promise<void> {
  const memory = Buffer.alloc(100_001);
  for (let at = from; at < FILE.length; at += memory.length) {
    await arriving.add(memory.subarray(0, FILE.copy(memory, 0, at, at + memory.length)));
    memory.fill(0);
  }
  await arriving.flush();
}

// As many bytes as are announced get a thread, or not.
describe.each([
  ['in this thread', FILE.length],
  ['in a thread of its own', 64 * MB],
])('a file that arrives is written %s', (_, bytes) => {
  it('and summed', async () => {
    const arriving = new Arriving(file, 0, { bytes, sum: true, kept: true });
    await bring(arriving);
    expect([arriving.end, await arriving.digest()]).toEqual([FILE.length, DIGEST]);
    await arriving.close();
    expect(readFileSync(path).equals(FILE)).toBe(true);
  });

  it('from where it stopped, and then not summed', async () => {
    writeFileSync(path, FILE.subarray(0, 5000));
    const arriving = new Arriving(file, 5000, { bytes, sum: true, kept: true });
    await bring(arriving, 5000);
    expect(await arriving.digest()).toBeUndefined();
    await arriving.close();
    expect(readFileSync(path).equals(FILE)).toBe(true);
  });

  it('or it is told that it cannot be', async () => {
    const closed = await open(path, 'r');
    const arriving = new Arriving(closed, 0, { bytes, sum: true, kept: true });
    await expect(bring(arriving)).rejects.toMatchObject({ code: 'EBADF' });
    await arriving.close();
    await closed.close();
  });
});

it('writes the rest of what was written in part', async () => {
  const lazy = {
    fd: file.fd,
    write: (bytes: Uint8Array, offset: number, length: number, at: number) =>
      file.write(bytes, offset, Math.min(length, 70_000), at),
    datasync: () => file.datasync(),
  };
  const arriving = new Arriving(lazy as unknown as FileHandle, 0, { bytes: FILE.length, sum: true, kept: true });
  await bring(arriving);
  await arriving.close();
  expect(readFileSync(path).equals(FILE)).toBe(true);
});

it('writes nothing behind what could not be written', async () => {
  const failed = { at: new Array<number>() };
  const lazy = {
    fd: file.fd,
    write: async (_: Uint8Array, __: number, length: number, at: number) => {
      failed.at.push(at);
      await new Promise(setImmediate);
      if (at > 0) throw new Error('full');
      return { bytesWritten: length };
    },
    datasync: () => file.datasync(),
  };
  const arriving = new Arriving(lazy as unknown as FileHandle, 0, { bytes: FILE.length, sum: true, kept: true });
  await expect(bring(arriving)).rejects.toThrow('full');
  await arriving.close();
  expect(failed.at).toEqual([0, 1 << 19]);
});

describe('a thread that writes', () => {
  it('is replaced by this one if it is lost, and has no digest then', async () => {
    const thread = startWritingThread(file, true);
    if (!thread) throw new Error('there is no thread');
    const shared = new SharedArrayBuffer(1000);
    const block = { shared, bytes: new Uint8Array(shared) };
    block.bytes.set(FILE.subarray(0, 1000));
    const writing = thread.write(block, 1000, 0);
    await thread.close();
    await writing;
    await thread.write(block, 500, 1000);
    expect(await thread.digest()).toBeUndefined();
    expect(readFileSync(path).equals(Buffer.concat([FILE.subarray(0, 1000), FILE.subarray(0, 500)]))).toBe(true);
  });

  it('is one of four at most', async () => {
    const threads = Array.from({ length: 5 }, () => startWritingThread(file, false));
    expect(threads.map((thread) => thread !== undefined)).toEqual([true, true, true, true, false]);
    for (const thread of threads) await thread?.close();
    const again = startWritingThread(file, false);
    expect(again).toBeDefined();
    await again?.close();
  });
});
