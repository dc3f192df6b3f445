import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import type { SFTPWrapper } from 'ssh2';
import { describe, expect, it } from 'vitest';
import { readStraight } from '../../src/transport/ssh2-sftp-data.ts';

type Session = SFTPWrapper & { push: (data: Buffer | null) => void };
const { SFTP } = createRequire(import.meta.url)('ssh2/lib/protocol/SFTP.js') as {
  SFTP: new (client: object, info: object) => Session;
};

/** ssh2's own session of a client, whose requests go nowhere, and which has been told the server's version. */
function session(straight: boolean): Session {
  const protocol = { channelData: () => undefined, channelClose: () => undefined };
  const sftp = new SFTP(
    { _protocol: protocol },
    {
      type: 'session',
      incoming: { id: 0, window: 1 << 21, packetSize: 1 << 15, state: 'open' },
      outgoing: { id: 0, window: 1 << 21, packetSize: 1 << 15, state: 'open' },
    },
  );
  sftp.on('error', () => undefined);
  sftp.push(packet(2, Buffer.from([0, 0, 0, 3])));
  if (straight) readStraight(sftp);
  return sftp;
}

function packet(type: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from([type]), ...parts]);
  return Buffer.concat([number(body.length), body]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const data = (id: number, bytes: Buffer) => packet(103, number(id), number(bytes.length), bytes);
const status = (id: number, code: number) =>
  packet(101, number(id), number(code), number(2), Buffer.from('no'), number(0));
const handle = Buffer.from('h');
const MEMORY = 2000;

/** What requests get of these answers, which arrive in pieces of such a size. */
function told(straight: boolean, answers: readonly Buffer[], size: number) {
  const sftp = session(straight);
  const memory = Buffer.alloc(4 * MEMORY);
  const said: unknown[] = [];
  for (let i = 0; i < 4; i++)
    sftp.read(handle, memory, i * MEMORY, MEMORY, 0, (error: Error | undefined, bytes: number) =>
      said.push([i, error?.message, bytes]),
    );
  sftp.on('error', ({ message }: Error) => said.push(message));
  const all = Buffer.concat(answers);
  // ssh2 itself takes what comes after a fault for anything.
  for (let at = 0; at < all.length; at += size) {
    if (!straight && said.some((one) => typeof one === 'string')) break;
    // Whoever sent it uses its memory again.
    const piece = Buffer.from(all.subarray(at, at + size));
    sftp.push(piece);
    piece.fill(0);
  }
  sftp.push(null);
  return { said, memory };
}

const some = randomBytes(MEMORY);
const few = randomBytes(700);

describe('answers to reads, as ssh2 itself reads them', () => {
  it.each([
    ['in another order', [data(2, some), data(0, few), data(3, randomBytes(1)), data(1, some)]],
    ['among other answers', [status(0, 1), data(1, some), status(2, 4), data(3, few)]],
    ['to nobody', [data(9, some), data(1, few), status(7, 0)]],
    ['of too many bytes', [data(0, randomBytes(MEMORY + 1)), data(1, few)]],
    ['without bytes', [data(0, Buffer.alloc(0)), data(1, few)]],
    ['of a wrong length', [packet(103, number(0), number(50), Buffer.alloc(40)), data(1, few)]],
    ['that are short', [packet(103, number(0)), data(1, few)]],
    ['that are empty', [number(0), data(1, few)]],
    ['that do not end', [data(0, some).subarray(0, 900)]],
  ])('%s', (_, answers) => {
    for (const size of [1, 3, 13, 500, 5000, 100_000]) {
      const [ours, theirs] = [told(true, answers, size), told(false, answers, size)];
      expect(ours.said).toEqual(theirs.said);
      if (answers.every(({ length }) => length > 900)) expect(ours.memory.equals(theirs.memory)).toBe(true);
    }
  });

  it('are put where they are wanted as they come', () => {
    const sftp = session(true);
    const memory = Buffer.alloc(MEMORY);
    sftp.read(handle, memory, 0, MEMORY, 0, () => undefined);
    sftp.push(data(0, some).subarray(0, 913));
    expect(memory.subarray(0, 900).equals(some.subarray(0, 900))).toBe(true);
  });
});
