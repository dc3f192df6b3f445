import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RequestJournal } from '../../src/gridmanager/chirp/journal.ts';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import { SystemError } from '../../src/gridmanager/chirp/beneath.ts';
import { openRemote } from '../../src/gridmanager/remote-io/answer-remote.ts';
import { DirectReads, type ReadsOf } from '../../src/gridmanager/remote-io/direct-reads.ts';
import { Incoming } from '../../src/io-proxy/incoming.ts';
import { dialDirect } from '../../src/reverse-connection/direct.ts';
import { type DirectReadsAt, REMOTE_CALLS, type RemoteCall, STATUS_BYTES } from '../../src/site/remote-io.ts';
import { everything } from '../reverse-connection/pair.ts';
import { until } from '../agent/agent.ts';
import { openFilesBelow } from './open-files.ts';

let dir = '';
let direct: DirectReads;
let links: Duplex[];
const answers = new WeakMap<Duplex, Incoming>();
let isCurrent = true;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'direct-'));
  direct = new DirectReads(join(dir, 's'));
  [links, isCurrent] = [[], true];
});
afterEach(async () => {
  vi.useRealTimers();
  for (const link of links) link.destroy();
  await direct.close();
  rmSync(dir, { recursive: true, force: true });
});

const reads: ReadsOf = {
  open: async (request) => {
    if (!isCurrent) throw new SystemError('EACCES');
    const secrets = new Secrets([], join(dir, 'nobody'));
    return openRemote(request, { iwd: dir, others: [], secrets, journal: new RequestJournal(join(dir, 'j')) });
  },
  inTurn: (work) => work(),
};
async function dial({ socket, ...key }: DirectReadsAt): Promise<Duplex> {
  const link = await dialDirect({ kind: 'socket', path: socket }, key);
  link.on('error', () => undefined);
  links.push(link);
  return link;
}

/** A request as gryphus-remote-io sends it. */
function request(call: RemoteCall, path: string, ...numbers: readonly number[]): Buffer {
  const word = Buffer.from(path);
  const head = Buffer.alloc(4 + 4 + 1 + 1 + 32 + 8);
  head.writeUInt32LE(head.length - 4 + word.length, 0);
  head.writeUInt8(REMOTE_CALLS.indexOf(call), 8);
  for (const [i, number] of numbers.entries()) head.writeBigInt64LE(BigInt(number), 10 + 8 * i);
  head.writeUInt32LE(word.length, 42);
  return Buffer.concat([head, word]);
}

async function read(link: Duplex, path: string, offset: number, length: number): Promise<Buffer | number> {
  const incoming = answers.get(link) ?? new Incoming(link);
  answers.set(link, incoming);
  link.write(request('read', path, offset, length));
  const head = await incoming.bytes(12);
  const result = Number(head.readBigInt64LE(4));
  const all = await incoming.bytes(head.readUInt32LE(0) - 8);
  return result < 0 ? result : all.subarray(STATUS_BYTES);
}

it('answers reads of what the job may read, each with its own bytes', async () => {
  const content = Buffer.from(Array.from({ length: 3_000_000 }, (_, i) => i % 251));
  writeFileSync(join(dir, 'big'), content);
  writeFileSync(join(dir, 'small'), 'small');
  writeFileSync(join(dir, 'key'), '-----BEGIN PRIVATE KEY-----\n');
  symlinkSync('/etc/passwd', join(dir, 'out'));
  const at = await direct.give(reads);
  const [one, two] = [await dial(at), await dial(at)];
  for (let offset = 0; offset < content.length; offset += 1 << 20) {
    const pieces = await Promise.all([one, two].map((link) => read(link, join(dir, 'big'), offset, 1 << 20)));
    for (const piece of pieces) expect(content.subarray(offset, offset + (1 << 20)).equals(piece as Buffer)).toBe(true);
    expect(String(await read(one, join(dir, 'small'), 0, 100))).toBe('small');
  }
  expect(await read(one, join(dir, 'key'), 0, 100)).toBe(-13);
  expect(await read(one, join(dir, 'out'), 0, 100)).toBe(-13);
  expect(await read(one, '/etc/passwd', 0, 100)).toBe(-13);
  expect(await read(one, join(dir, 'none'), 0, 100)).toBe(-2);
});

it('believes for a second what it judged, and no longer', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const path = join(dir, 'f');
  writeFileSync(path, 'before');
  const link = await dial(await direct.give(reads));
  expect(String(await read(link, path, 0, 100))).toBe('before');
  writeFileSync(`${path}2`, 'after');
  renameSync(`${path}2`, path);
  vi.advanceTimersByTime(900);
  expect(String(await read(link, path, 0, 100))).toBe('before');
  vi.advanceTimersByTime(200);
  expect(String(await read(link, path, 0, 100))).toBe('after');
  isCurrent = false;
  vi.advanceTimersByTime(1100);
  expect(await read(link, path, 0, 100)).toBe(-13);
});

it('answers nothing but reads, to nobody but who has the key', async () => {
  writeFileSync(join(dir, 'f'), 'x');
  const at = await direct.give(reads);
  for (const call of REMOTE_CALLS.filter((name) => name !== 'read')) {
    const link = await dial(at);
    link.write(request(call, join(dir, 'f')));
    expect(await everything(link), call).toHaveLength(0);
  }
  const stranger = await dial({ ...at, secret: '0'.repeat(64) });
  stranger.write(request('read', join(dir, 'f'), 0, 10));
  expect(await everything(stranger).catch(() => '')).toHaveLength(0);
});

it('closes the file when the connection is cut, also while an answer waits to be read', async () => {
  const path = join(dir, 'f');
  writeFileSync(path, Buffer.alloc(8 << 20));
  const link = await dial(await direct.give(reads));
  for (let i = 0; i < 8; i++) link.write(request('read', path, i << 20, 1 << 20));
  await until('the file to be open', () => openFilesBelow(path) > 0 || undefined);
  link.destroy();
  await until('the file to be closed', () => openFilesBelow(path) === 0 || undefined);
});

it('forgets a key by which nobody came, and those of connections at its end', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  writeFileSync(join(dir, 'f'), 'x');
  const [unused, used] = [await direct.give(reads), await direct.give(reads)];
  const link = await dial(used);
  expect(String(await read(link, join(dir, 'f'), 0, 10))).toBe('x');
  vi.advanceTimersByTime(61_000);
  vi.useRealTimers();
  const late = await dial(unused);
  late.write(request('read', join(dir, 'f'), 0, 10));
  expect(await everything(late).catch(() => '')).toHaveLength(0);
  expect(String(await read(link, join(dir, 'f'), 0, 10))).toBe('x');
  await direct.close();
  await until('its end', () => link.destroyed || undefined);
});
