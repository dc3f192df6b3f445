import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';

const BLOCK = 1 << 20;

/** In hexadecimal. */
export async function sha256Of(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    return await sha256OfOpen(file);
  } finally {
    await file.close();
  }
}

/** From its start to its end: while a block is summed, the next is read, and no more memory is used than for two. */
export async function sha256OfOpen(file: Pick<FileHandle, 'read'>): Promise<string> {
  const hash = createHash('sha256');
  let [block, other] = [Buffer.allocUnsafeSlow(BLOCK), Buffer.allocUnsafeSlow(BLOCK)];
  let reading = file.read(block, 0, BLOCK, 0);
  for (let at = 0; ; ) {
    const { bytesRead } = await reading;
    if (bytesRead === 0) return hash.digest('hex');
    at += bytesRead;
    reading = file.read(other, 0, BLOCK, at);
    // The next turn finds it out.
    reading.catch(() => undefined);
    hash.update(block.subarray(0, bytesRead));
    [block, other] = [other, block];
  }
}
