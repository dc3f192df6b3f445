import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { acceptDirect, dialDirect, type DirectWay, isDirect } from '../../src/reverse-connection/direct.ts';
import { bytes, everything, socketPair } from './pair.ts';

const key = randomBytes(32);
const known = { name: 'reads', secret: key.toString('hex') };
const keyOf = (name: string) => (name === 'reads' ? key : undefined);
let dir = '';
let servers: Server[];
let came: Socket[];
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'direct-'));
  [servers, came] = [[], []];
});
afterEach(() => {
  for (const one of [...servers.map((server) => ({ destroy: () => server.close() })), ...came]) one.destroy();
  rmSync(dir, { recursive: true, force: true });
});

/** A place to connect to, and what is seen of each byte that passes there. */
async function place(kind: DirectWay['kind']): Promise<{ way: DirectWay; next: Promise<Duplex>; seen: () => string }> {
  let seen = '';
  const server = createServer();
  servers.push(server);
  const next = new Promise<Duplex>((resolve) => {
    server.on('connection', (socket) => {
      came.push(socket);
      const [push, write] = [socket.push.bind(socket), socket.write.bind(socket)];
      socket.push = (chunk: Buffer | null) => {
        seen += chunk?.toString('latin1') ?? '';
        return push(chunk);
      };
      socket.write = (chunk: Buffer, ...more: never[]) => {
        seen += Buffer.from(chunk).toString('latin1');
        return write(chunk, ...more);
      };
      resolve(socket);
    });
  });
  const path = join(dir, 's');
  await new Promise<void>((resolve) => (kind === 'socket' ? server.listen(path, resolve) : server.listen(0, resolve)));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const way: DirectWay = kind === 'socket' ? { kind, path } : { kind, host: '127.0.0.1', port };
  return { way, next, seen: () => seen };
}

it.each(['socket', 'port'] as const)('admits who has the key, by a %s', async (kind) => {
  const { way, next } = await place(kind);
  const dialled = dialDirect(way, known);
  const raw = await next;
  expect(await isDirect(raw)).toBe(true);
  const [link, guest] = await Promise.all([dialled, acceptDirect(raw, { keyOf })]);
  expect(guest.worker).toBe('reads');
  link.write('a question');
  expect(String(await bytes(guest.link, 10))).toBe('a question');
  guest.link.end('its answer');
  expect(String(await everything(link))).toBe('its answer');
});

it.each([
  ['socket', { name: 'reads', secret: randomBytes(32).toString('hex') }],
  ['socket', { name: 'reads', secret: '' }],
  ['socket', { name: 'other', secret: key.toString('hex') }],
  ['port', { name: 'reads', secret: randomBytes(32).toString('hex') }],
  ['port', { name: 'other', secret: key.toString('hex') }],
] as const)('refuses who has not, by a %s: %j', async (kind, shown) => {
  const { way, next } = await place(kind);
  const dialled = dialDirect(way, shown).catch(() => undefined);
  await expect(acceptDirect(await next, { keyOf })).rejects.toMatchObject({ code: 'login-refused' });
  const link = await dialled;
  // By a socket, whoever dialled sees only an end.
  if (link) expect(String(await everything(link).catch(() => ''))).toBe('');
});

it.each(['nonsense\n', `${'gryphus-direct '.padEnd(300, 'x')}\n`, 'gryphus-direct reads', ''])(
  'refuses what is no greeting: %j',
  async (text) => {
    const [near, far] = await socketPair();
    near.on('error', () => undefined).end(text);
    await expect(acceptDirect(far, { keyOf })).rejects.toMatchObject({ code: 'login-refused' });
    near.destroy();
  },
);

it('is not waited for without end when it says nothing', async () => {
  const [near, far] = await socketPair();
  far.on('error', () => undefined);
  await expect(acceptDirect(far, { keyOf, patienceMs: 50 })).rejects.toMatchObject({ code: 'login-refused' });
  near.destroy();
});

it('shows nothing to who listens at a port', async () => {
  const { way, next, seen } = await place('port');
  const dialled = dialDirect(way, known);
  const guest = await acceptDirect(await next, { keyOf });
  const link = await dialled;
  link.write('what the job reads');
  expect(String(await bytes(guest.link, 18))).toBe('what the job reads');
  expect(seen()).toContain('gryphus-direct\n');
  expect(seen()).not.toContain('what the job reads');
  expect(seen()).not.toContain(known.secret);
});

it.each(['\x16\x03\x01 TLS', 'gryphus-dials', 'h'])('leaves %j to the central manager, whole', async (text) => {
  const [near, far] = await socketPair();
  near.end(text);
  expect(await isDirect(far)).toBe(false);
  expect((await everything(far)).toString('latin1')).toBe(text);
});

it.each(['gryphus-d', 'g', ''])('closes what ends before it can be seen: %j', async (text) => {
  const [near, far] = await socketPair();
  near.end(text);
  expect(await isDirect(far)).toBe(false);
  expect(far.destroyed).toBe(true);
});

it('takes nothing of a greeting that comes in pieces', async () => {
  const [near, far] = await socketPair();
  const asked = isDirect(far);
  for (const letter of 'gryphus-direct reads') {
    near.write(letter);
    await new Promise(setImmediate);
  }
  expect(await asked).toBe(true);
  near.end(` ${known.secret}\nmore`);
  const { link } = await acceptDirect(far, { keyOf });
  expect(String(await everything(link))).toBe('more');
});
