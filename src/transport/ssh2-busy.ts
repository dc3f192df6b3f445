import type { Duplex } from 'node:stream';
import type { Client } from 'ssh2';
import * as z from 'zod';
import { passed } from '../util/young-garbage.ts';

const inside = z.object({ _sock: z.custom<Duplex>((value) => typeof value === 'object' && value !== null) });

/**
 * Makes much data over a connection cheaper. ssh2 writes each packet of 32 KB in three pieces, each a system call and a segment: those of one turn go
 * out together. And each packet leaves several buffers behind.
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
    if (given[0] instanceof Uint8Array) passed(given[0].length);
    return write(...given);
  };
  socket.on('data', (chunk: Uint8Array) => passed(chunk.length));
}
