import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Duplex } from 'node:stream';
import type { Client } from 'ssh2';
import * as z from 'zod';

/** After so many bytes, their memory is given back; bytes. */
const ENOUGH = 8 << 20;

const inside = z.object({ _sock: z.custom<Duplex>((value) => typeof value === 'object' && value !== null) });
let bytes = 0;
let collect: ((how: { readonly type: 'minor' }) => void) | undefined;

/**
 * Makes much data over a connection cheaper. ssh2 writes each packet of 32 KB in three pieces, each a system call and a segment: those of one turn go
 * out together. And each packet leaves several buffers behind that V8 counts as old memory, so that it looks through the whole
 * heap every ten or twenty megabytes, which took half of the process's time; looking through the young objects is enough, and takes a millisecond.
 */
export function readyForMuch(client: Client): void {
  const parsed = inside.safeParse(client);
  if (!parsed.success) return;
  const { _sock: socket } = parsed.data;
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
  let held = false;
  const release = () => {
    held = false;
    socket.uncork();
  };
  socket.write = (...given: unknown[]) => {
    if (!held) {
      held = true;
      socket.cork();
      process.nextTick(release);
    }
    passed(given[0]);
    return write(...given);
  };
  socket.on('data', passed);
}

function passed(chunk: unknown): void {
  if (!(chunk instanceof Uint8Array)) return;
  bytes += chunk.length;
  if (bytes < ENOUGH) return;
  bytes = 0;
  if (!collect) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as typeof collect;
    setFlagsFromString('--no-expose-gc');
  }
  collect?.({ type: 'minor' });
}
