import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { place } from '../../src/staging/place.ts';
import { placeBytes } from '../../src/staging/place-bytes.ts';
import { pour } from '../../src/staging/pour.ts';

let dir: string;
let fifo: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pour-'));
  fifo = join(dir, 'fifo');
  execFileSync('mkfifo', [fifo]);
});
afterEach(() => rmSync(dir, { recursive: true }));

it('a pipe without a reader is an error at once, and occupies nothing', async () => {
  const from = join(dir, 'from');
  writeFileSync(from, 'x');
  const unread = { code: 'output-unwritable', message: expect.stringContaining('a pipe without a reader') as unknown };
  const tries = Array.from({ length: 8 }, (_, i) =>
    i % 2 === 0 ? placeBytes(Buffer.from('x'), 'a', fifo) : place({ from, to: fifo, executable: false }),
  );
  for (const one of await Promise.allSettled(tries)) expect(one).toMatchObject({ status: 'rejected', reason: unread });
  await place({ from, to: join(dir, 'to'), executable: false });
});

it('all of an output goes through a pipe that is read', async () => {
  const from = join(dir, 'from');
  writeFileSync(from, 'x'.repeat(1_000_000));
  const reader = spawn('sh', ['-c', 'echo ready; sleep 0.2; wc -c <"$1"', 'sh', fifo], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let out = '';
  reader.stdout.on('data', (bytes: Buffer) => (out += bytes.toString()));
  // A reader that has opened it, as nobody waits for one.
  const held = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  await once(reader.stdout, 'data');
  const placed = place({ from, to: fifo, executable: false });
  await once(reader, 'close').finally(() => closeSync(held));
  await placed;
  expect(out).toMatch(/^ready\n\s*1000000\n$/);
});

it('a reader that stops reading is not waited for without end', async () => {
  const held = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const poured = pour(Readable.from([Buffer.alloc(1_000_000)]), fifo, 300);
    await expect(poured).rejects.toMatchObject({ code: 'output-unwritable' });
  } finally {
    closeSync(held);
  }
});

it('devices are written to', async () => {
  await placeBytes(Buffer.from('x'), 'a', '/dev/null');
  await expect(placeBytes(Buffer.from('x'), 'a', '/dev/full')).rejects.toMatchObject({ code: 'disk-full' });
});
