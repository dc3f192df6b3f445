import { open, stat } from 'node:fs/promises';

/** Up to `most` bytes from offset `from` of the files' joined contents. A file that is not there counts as empty. */
export async function readAcross(paths: readonly string[], from: number, most: number): Promise<Buffer> {
  const found: Buffer[] = [];
  let skip = from;
  let left = most;
  for (const path of paths) {
    const size = (await stat(path).catch(() => undefined))?.size ?? 0;
    const length = Math.min(left, size - skip);
    if (length > 0) {
      const file = await open(path, 'r');
      try {
        const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, skip);
        found.push(buffer.subarray(0, bytesRead));
        left -= bytesRead;
      } finally {
        await file.close();
      }
    }
    skip = Math.max(0, skip - size);
  }
  return Buffer.concat(found);
}
