import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { UMASK, unplaceable } from '../../staging/place.ts';
import { isSpecial } from '../../staging/pour.ts';
import { readAcross } from './read-across.ts';

const CHUNK = 1024 * 1024;
/** How much of what is there is compared with what came home before more is appended, bytes. */
const COMPARED = 64 * 1024;

/**
 * Brings the file at `to` up to the joined contents of `paths`. What is there already, by its size and its last bytes, is
 * not written again; another content is replaced from its start, as in HTCondor. A pipe or a device gets its bytes at
 * the end. `anew`: nothing that is there counts. Rejects with 'disk-full' or 'output-unwritable'.
 */
export async function growHere(
  to: string,
  paths: readonly string[],
  umask: number | undefined,
  anew = false,
): Promise<void> {
  try {
    if (await isSpecial(to)) return;
    const file = await open(to, constants.O_RDWR | constants.O_CREAT, 0o666 & ~(umask ?? UMASK));
    try {
      let at = (await file.stat()).size;
      const tail = Math.min(at, COMPARED);
      const { buffer } = await file.read(Buffer.alloc(tail), 0, tail, at - tail);
      if (anew || !buffer.equals(await readAcross(paths, at - tail, tail))) {
        await file.truncate(0);
        at = 0;
      }
      for (;;) {
        const fresh = await readAcross(paths, at, CHUNK);
        if (fresh.length === 0) return;
        await file.write(fresh, 0, fresh.length, at);
        at += fresh.length;
      }
    } finally {
      await file.close();
    }
  } catch (thrown) {
    throw unplaceable(to, thrown);
  }
}
