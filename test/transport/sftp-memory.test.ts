import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { SFTPWrapper } from 'ssh2';
import { expect, it } from 'vitest';
import type { RemoteShell } from '../../src/transport/remote-shell.ts';
import type { ShellFiles } from '../../src/transport/shell-files.ts';
import { SftpFiles } from '../../src/transport/ssh2-sftp.ts';

const MB = 1 << 20;
const FILE = randomBytes(40 * MB + 17);

type Done = (error: undefined, bytes: number) => void;

/** An SFTP session that fills memory, and takes what is in it, only when it answers. */
function session() {
  const memories = new Set<ArrayBufferLike>();
  const there = Buffer.alloc(FILE.length);
  const answer = (work: () => number, done: Done) => void setImmediate(() => done(undefined, work()));
  const sftp = Object.assign(new EventEmitter(), {
    open: (_path: string, _flags: string, _how: unknown, done: (error: undefined, handle: Buffer) => void) =>
      done(undefined, Buffer.from('h')),
    close: () => undefined,
    read: (_: Buffer, block: Buffer, offset: number, bytes: number, at: number, done: Done) => {
      memories.add(block.buffer);
      answer(() => FILE.subarray(at, at + bytes).copy(block, offset), done);
    },
    write: (_: Buffer, block: Buffer, offset: number, bytes: number, at: number, done: Done) => {
      memories.add(block.buffer);
      answer(() => block.copy(there, at, offset, offset + bytes), done);
    },
  });
  const files = new SftpFiles(sftp as unknown as SFTPWrapper, {} as RemoteShell, { label: 'there' } as ShellFiles);
  return { files, memories, there };
}

it('a file is read into memory that is used again', async () => {
  const { files, memories } = session();
  let at = 0;
  for await (const block of files.read('file', 0)) {
    // What the others that are under way write goes elsewhere.
    await new Promise(setImmediate);
    expect(block.equals(FILE.subarray(at, at + block.length))).toBe(true);
    at += block.length;
  }
  expect(at).toBe(FILE.length);
  expect(memories.size).toBeLessThanOrEqual(17);
});

it('a file is written from memory that is used again, but not before it is written', async () => {
  const { files, memories, there } = session();
  const memory = Buffer.alloc(MB + 100);
  async function* bytes() {
    for (let at = 0; at < FILE.length; at += memory.length) {
      yield memory.subarray(0, FILE.copy(memory, 0, at, at + memory.length));
      memory.fill(0);
    }
  }
  await files.write('file', 0, bytes());
  expect(there.equals(FILE)).toBe(true);
  expect(memories.size).toBeLessThanOrEqual(16);
});
