import { createHash, randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Transport } from '../../src/transport/contract.ts';
import { openTransport } from '../../src/transport/open-transport.ts';
import type { WaysView } from '../../src/reverse-connection/choose.ts';
import { acceptDirect, dialDirect, isDirect } from '../../src/reverse-connection/direct.ts';
import { dialHome } from '../../src/reverse-connection/dial.ts';
import type { Way } from '../../src/reverse-connection/home.ts';
import { openPortWay, type PortWay } from '../../src/reverse-connection/port-way.ts';
import { relay } from '../../src/reverse-connection/relay.ts';
import { acceptHome } from '../../src/reverse-connection/secure.ts';
import { SiteWays } from '../../src/reverse-connection/site-ways.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { bytes } from './pair.ts';

describe.each(['ssh2', 'openssh'] as const)('the reverse connections from a site, by %s', (kind) => {
  let dir: string;
  let home: string;
  let sshd: Sshd;
  let transport: Transport;
  let centralManager: Server;
  let within: Server;
  let port: PortWay;
  let ways: SiteWays;
  let views: WaysView[];
  const key = randomBytes(32);
  const sha = createHash('sha256').update('node').digest('hex');
  const reads = randomBytes(32);
  const sockets = new Set<Socket>();
  const keyOf = (worker: string) => (worker === 'p1' ? key : undefined);

  beforeEach(async () => {
    dir = mkdtempSync('/tmp/gry-ways-');
    sshd = await startSshd();
    home = join(sshd.home, "it's");
    mkdirSync(join(home, 'cache'), { recursive: true });
    cpSync(process.execPath, join(home, 'cache', sha));
    transport = await openTransport('site', { transport: kind, sshConfigFile: sshd.sshConfigFile });
    centralManager = createServer((socket) => {
      sockets.add(socket);
      acceptHome(socket, { keyOf }).then(
        ({ link }) => {
          link.on('error', () => undefined);
          link.pipe(link);
        },
        () => undefined,
      );
    });
    await new Promise<void>((resolve) => centralManager.listen(join(dir, 'central-manager'), resolve));
    // A worker that the port has admitted is not checked again.
    within = createServer((socket) => {
      sockets.add(socket);
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => within.listen(join(dir, 'within'), resolve));
    port = await openPortWay({
      host: '127.0.0.1',
      port: 0,
      welcome: ({ link }) => relay(link, connect(join(dir, 'within'))),
      keyOf,
      descriptors: 1000,
      onTurnedAway: () => undefined,
    });
    views = [];
    ways = new SiteWays({
      transport,
      home: async () => home,
      node: () => sha,
      port: { host: '127.0.0.1', port: port.port },
      centralManager: join(dir, 'central-manager'),
      takeDirect: async (raw) => {
        if (!(await isDirect(raw))) return false;
        void acceptDirect(raw, { keyOf: () => reads }).then(
          ({ link }) => link.pipe(link),
          () => undefined,
        );
        return true;
      },
      onView: (view) => views.push(view),
      againMs: 50,
    });
  });
  afterEach(async () => {
    ways.close();
    port.close();
    for (const socket of sockets) socket.destroy();
    centralManager.close();
    within.close();
    await transport.close();
    await sshd.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const dial = (way: Way) => dialHome({ worker: 'p1', key: key.toString('hex'), ways: [way] });
  async function echoes(link: Duplex): Promise<boolean> {
    const sent = randomBytes(100_000);
    link.write(sent);
    return (await bytes(link, sent.length)).equals(sent);
  }
  /** Records the ways until there is a new way of this kind. */
  async function until(holds: () => boolean): Promise<void> {
    const deadline = Date.now() + 20_000;
    while (!holds()) {
      if (Date.now() > deadline) throw new Error(`in vain: ${JSON.stringify(ways.view)}`);
      await ways.keep(new Set(['p1'])).catch(() => undefined);
      await new Promise((done) => setTimeout(done, 30));
    }
  }

  it('all lead there, each again after a cut, and the file says the present ones', async () => {
    await until(() => ways.view.ways.length >= 4);
    const { ways: all, because } = ways.view;
    expect(all.map((way) => way.kind).slice(0, 3)).toEqual(['port', 'socket', 'port']);
    expect(all.at(-1)?.kind).toBe('mailbox');
    expect(because[0]).toBe(`port 127.0.0.1:${port.port}: the login node reaches it.`);
    const first = all[0];
    const socket = all[1];
    const relayed = all[2];
    const mailbox = all.at(-1);
    if (!first || !socket || !relayed || !mailbox) throw new Error('ways are missing');
    const links = await Promise.all([first, socket, relayed, mailbox].map((way) => dial(way)));
    expect(await Promise.all(links.map(echoes))).toEqual([true, true, true, true]);
    expect(ways.view.came).toEqual({ connection: 2, mailbox: 1 });
    // What is for the GridManager itself comes by the same ways, and is no worker.
    for (const way of [socket, relayed]) {
      if (way.kind === 'mailbox') throw new Error('it is a mailbox');
      const own = await dialDirect(way, { name: 'r', secret: reads.toString('hex') });
      expect(await echoes(own)).toBe(true);
      expect(ways.view.came).toEqual({ connection: 2, mailbox: 1 });
      own.destroy();
    }

    // The connection is cut: what used it ends, letters wait.
    const [direct, bySocket, byRelay, byLetters] = links;
    if (!direct || !bySocket || !byRelay || !byLetters) throw new Error('links are missing');
    const ended = Promise.all([bySocket, byRelay].map((link) => new Promise((resolve) => link.once('close', resolve))));
    // A side that does not read does not see the end.
    for (const link of links) link.on('error', () => undefined).resume();
    sshd.killSessions();
    await ended;
    expect(await echoes(direct)).toBe(true);
    expect(await echoes(byLetters)).toBe(true);

    // A worker that connects reads the ways that exist by then.
    const again = { worker: 'p1', key: key.toString('hex'), waysFile: join(home, 'ways.json'), ways: [] };
    await until(() => ways.view.ways.some((way) => way.kind === 'port' && way.port !== port.port && way !== relayed));
    const link = await dialHome(again);
    expect(await echoes(link)).toBe(true);
    for (const one of [direct, byLetters, link]) one.destroy();
  }, 60_000);

  it('are closed with the last worker, and its box is gone', async () => {
    await until(() => ways.view.ways.length >= 4);
    const link = await dial({ kind: 'mailbox', directory: join(home, 'mail') });
    link.on('error', () => undefined);
    const closed = new Promise((resolve) => link.once('close', resolve));
    await ways.keep(new Set());
    const socket = ways.view.ways.find((way) => way.kind === 'socket');
    if (!socket) throw new Error('no socket');
    await expect(dial(socket)).rejects.toThrow('cannot be reached');
    link.destroy();
    await closed;
  }, 60_000);
});
