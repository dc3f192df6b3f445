import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LocalTransport } from '../../src/transport/local.ts';
import { mailCarrier } from '../../src/reverse-connection/mailbox/carry.ts';
import {
  type FoundLetter,
  MailboxStore,
  type MailboxRequest,
} from '../../src/reverse-connection/mailbox/mailbox-store.ts';
import { mailboxDuplex } from '../../src/reverse-connection/mailbox/worker-end.ts';
import { acceptHome, greetHome } from '../../src/reverse-connection/secure.ts';
import { bytes, everything } from './pair.ts';
import { removeTree } from '../remove-tree.ts';

type Exchange = (request: MailboxRequest) => Promise<readonly FoundLetter[]>;
const QUICK = { soonestMs: 2, latestMs: 20 };

describe('mailboxes', () => {
  let dir: string;
  let root: string;
  let exchange: Exchange;
  const stores: MailboxStore[] = [];
  const workers: Duplex[] = [];
  const links: { worker: string; link: Duplex }[] = [];
  let heard: () => void = () => undefined;

  beforeEach(() => {
    dir = mkdtempSync('/tmp/gry-mail-');
    root = join(dir, "it's $(here)\n");
    exchange = mailCarrier(new LocalTransport(dir), root);
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) store.close();
    for (const worker of workers.splice(0)) worker.on('error', () => undefined).destroy();
    for (const { link } of links.splice(0)) link.destroy();
    // A worker that is just ending may write its last mark.
    await removeTree(dir);
  });

  function openStore(by: Exchange = exchange): MailboxStore {
    const store = new MailboxStore({
      exchange: by,
      ...QUICK,
      idleMs: 20,
      onLink: (worker, link) => {
        links.push({ worker, link });
        heard();
      },
    });
    stores.push(store);
    void store.run();
    return store;
  }
  async function openWorker(): Promise<Duplex> {
    const worker = await mailboxDuplex(root, '-p1', QUICK);
    workers.push(worker);
    return worker;
  }
  async function linkOf(worker: string, n = 0): Promise<Duplex> {
    for (;;) {
      const found = links.filter((one) => one.worker === worker)[n];
      if (found) return found.link;
      await new Promise<void>((resolve) => (heard = resolve));
    }
  }

  it('carry a link of many bytes both ways, and its end', async () => {
    openStore();
    const up = randomBytes(3_000_000);
    const down = randomBytes(3_000_000);
    const worker = await openWorker();
    worker.end(up);
    const agent = await linkOf('-p1');
    agent.end(down);
    const [atAgent, atWorker] = await Promise.all([everything(agent), everything(worker)]);
    expect(atAgent.equals(up)).toBe(true);
    expect(atWorker.equals(down)).toBe(true);
    expect(statSync(join(root, '-p1')).mode & 0o777).toBe(0o700);
  });

  it('lose and double nothing where rounds fail before, after and in the middle', async () => {
    let round = 0;
    openStore(async (request) => {
      const how = round++ % 4;
      if (how === 1) throw new Error('cut before');
      const half = { ...request, put: request.put.slice(0, 1), del: [] };
      const found = await exchange(how === 2 ? half : request);
      if (how === 2 || how === 3) throw new Error('cut after');
      return found;
    });
    const worker = await openWorker();
    worker.write('0;');
    const agent = await linkOf('-p1');
    const lines = Array.from({ length: 300 }, (_, i) => `${i + 1};`);
    for (const line of lines) {
      worker.write(line);
      agent.write(line);
      await new Promise(setImmediate);
    }
    worker.end();
    agent.end();
    const [atAgent, atWorker] = await Promise.all([everything(agent), everything(worker)]);
    expect(atAgent.toString()).toBe(`0;${lines.join('')}`);
    expect(atWorker.toString()).toBe(lines.join(''));
  });

  it('tell a worker whose agent was started again that a new link is due', async () => {
    const first = openStore();
    const worker = await openWorker();
    const ended = new Promise<string>((resolve) => {
      worker.once('error', (error) => resolve(error.message));
    });
    worker.write('hello');
    expect((await bytes(await linkOf('-p1'), 5)).toString()).toBe('hello');
    // SIGKILL: nothing is sent any more.
    first.close();
    openStore();
    worker.write('are you there?');
    expect(await ended).toBe('the agent does not know this link');
    const again = await openWorker();
    again.write('hello again');
    expect((await bytes(await linkOf('-p1', 1), 11)).toString()).toBe('hello again');
  });

  it('carry the secure link, and forget a worker that is gone', async () => {
    const store = openStore();
    const key = randomBytes(32);
    const greeting = openWorker().then((raw) => greetHome(raw, { worker: '-p1', key }));
    const guest = await acceptHome(await linkOf('-p1'), { keyOf: () => key });
    const link = await greeting;
    link.on('error', () => undefined);
    guest.link.on('error', () => undefined);
    link.write('done');
    expect((await bytes(guest.link, 4)).toString()).toBe('done');
    const closed = new Promise((resolve) => link.once('close', resolve));
    guest.link.destroy();
    await closed;
    store.drop('-p1');
    const deadline = Date.now() + 10_000;
    while (readdirSync(root).includes('-p1') && Date.now() < deadline)
      await new Promise((done) => setTimeout(done, 10));
    expect(readdirSync(root)).toEqual([]);
  });

  it('end a link at the agent when the worker gives it up', async () => {
    openStore();
    const worker = await openWorker();
    worker.write('x');
    const agent = await linkOf('-p1');
    const closed = new Promise((resolve) => agent.once('close', resolve));
    worker.destroy();
    await closed;
  });
});
