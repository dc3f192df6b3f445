import type { FileHandle } from 'node:fs/promises';

/**
 * A file's bytes from an offset to its end, in blocks of `size` bytes but for the last one. While one is used, the next is read. There are two
 * blocks of memory: what was yielded is overwritten when the next is asked for, so that a file of any size leaves no garbage.
 */
export async function* blocksOf(file: Pick<FileHandle, 'read'>, from = 0, size = 1 << 20): AsyncGenerator<Buffer> {
  let [block, other] = [Buffer.allocUnsafeSlow(size), Buffer.allocUnsafeSlow(size)];
  let reading = file.read(block, 0, size, from);
  try {
    for (let at = from; ; ) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return;
      at += bytesRead;
      reading = file.read(other, 0, size, at);
      // The next turn finds it out.
      reading.catch(() => undefined);
      yield block.subarray(0, bytesRead);
      [block, other] = [other, block];
    }
  } finally {
    // Whoever closes the file after a break must not do so under a read.
    await reading.catch(() => undefined);
  }
}
