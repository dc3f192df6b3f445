import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * After so many bytes, their memory is given back; bytes. ssh2 makes about three times as much garbage, and V8 begins to look through the old heap when
 * 8 to 16 MB have come since it last did.
 */
const ENOUGH = 4 << 20;

let bytes = 0;
let collect: ((how: { readonly type: 'minor' }) => void) | undefined;

/**
 * Called for bytes that have come or gone in buffers of their own. V8 counts these as old memory, so that it looks through the whole heap every ten or
 * twenty megabytes, which takes half of a process's time when much data passes; looking through the young objects is enough, and takes
 * a millisecond.
 */
export function passed(count: number): void {
  bytes += count;
  if (bytes < ENOUGH) return;
  bytes = 0;
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as typeof collect;
    setFlagsFromString('--no-expose-gc');
  }
  collect?.({ type: 'minor' });
}
