import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dialHome } from '../../src/reverse-connection/dial.ts';
import { neighbourhood, openPortWay, type PortWay } from '../../src/reverse-connection/port-way.ts';
import { relay } from '../../src/reverse-connection/relay.ts';
import { waitUntil } from '../sites/ports.ts';

let dir: string;
let centralManager: Server;
let port: PortWay;
const key = randomBytes(32);
const led: Socket[] = [];
let away: string[] = [];
const knocking: Socket[] = [];

beforeEach(async () => {
  dir = mkdtempSync('/tmp/gq-');
  centralManager = createServer((socket) => {
    led.push(socket);
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => centralManager.listen(join(dir, 'central-manager'), resolve));
});
afterEach(() => {
  port.close();
  for (const socket of [...led.splice(0), ...knocking.splice(0)]) socket.destroy();
  centralManager.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(descriptors: number, patienceMs?: number): Promise<void> {
  const turned: string[] = [];
  away = turned;
  port = await openPortWay({
    host: '127.0.0.1',
    port: 0,
    welcome: ({ link }) => relay(link, connect(join(dir, 'central-manager'))),
    keyOf: (worker) => (worker === 'w' ? key : undefined),
    descriptors,
    onTurnedAway: (message) => turned.push(message),
    ...(patienceMs === undefined ? {} : { patienceMs }),
  });
}

/** Silent connections; all are established or refused when it resolves. */
async function knock(count: number, from: string): Promise<void> {
  const all = Array.from({ length: count }, async () => {
    const socket = connect({ port: port.port, host: '127.0.0.1', localAddress: from });
    knocking.push(socket);
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('error', () => resolve());
    });
  });
  await Promise.all(all);
}

const open_ = () => knocking.filter((socket) => !socket.destroyed && socket.readyState === 'open').length;
const dial = (token = key) =>
  dialHome({ worker: 'w', key: token.toString('hex'), ways: [{ kind: 'port', host: '127.0.0.1', port: port.port }] });

async function echo(): Promise<string> {
  const link = await dial();
  link.write('hello');
  const said = await new Promise<string>((resolve) => link.once('data', (data) => resolve(String(data))));
  link.destroy();
  return said;
}

describe('the port for workers', () => {
  it('connects a worker with a token to the central manager, and no one else', async () => {
    await open(1000);
    expect(await echo()).toBe('hello');
    await expect(dial(randomBytes(32))).rejects.toMatchObject({ code: 'site-unreachable' });
    expect(led).toHaveLength(1);
    expect(away).toEqual([expect.stringContaining("calls itself 'w'")]);
  });

  it('keeps few unauthenticated connections of one address, and a limited number in total', async () => {
    await open(400);
    await knock(100, '127.0.0.1');
    await waitUntil('most of them to be sent away', () => open_() === 32);
    for (let host = 2; host < 12; host++) await knock(30, `127.0.0.${host}`);
    await waitUntil('most of them to be sent away', () => open_() === 84);
    expect(await echo()).toBe('hello');
    expect(led).toHaveLength(1);
  });

  it('closes unauthenticated connections that say nothing', async () => {
    await open(1000, 200);
    await knock(5, '127.0.0.1');
    await waitUntil('them to be sent away', () => open_() === 0);
    expect(away).toHaveLength(5);
  });

  it('admits as many workers as it has descriptors for', async () => {
    await open(80);
    const links = [];
    for (let n = 0; n < 6; n++) links.push(await dial());
    await expect(
      dial().then((link) => new Promise((_, reject) => link.once('close', () => reject(new Error('closed'))))),
    ).rejects.toThrow(/closed|disconnected/);
    expect(away).toEqual(['at most 6 workers can connect here']);
    for (const link of links) link.destroy();
    await waitUntil('room', async () => (await echo().catch(() => '')) === 'hello');
  });
});

describe('one address', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('of %s is %s', (address, one) => expect(neighbourhood(address)).toBe(one));
});
