import { statfs } from 'node:fs/promises';
import { GryphusError } from '../errors.ts';

/** The free space that must remain on this disk: the smaller of this many bytes and this part of the disk. */
const FLOOR = { bytes: 100e6, part: 0.02 };

/**
 * 'disk-full' if a directory's disk has little more space than `coming` bytes. The queue is usually on the same disk, and
 * stops when it cannot write.
 */
export async function keepFloor(directory: string, coming = 0): Promise<void> {
  const { bavail, blocks, bsize } = await statfs(directory);
  if (bavail * bsize - coming >= Math.min(FLOOR.bytes, FLOOR.part * blocks * bsize)) return;
  throw new GryphusError('disk-full', `There is no space for incoming files: ${directory} is nearly full.`, {
    suggestions: ['Free some space, then `gryphus release` the job.'],
  });
}
