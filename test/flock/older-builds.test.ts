import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LendingClient } from '../../src/flock/lending-client.ts';
import { askDirect } from '../../src/pool/central-manager/direct-results.ts';
import { type FromClient, readFromClient, type ToClient } from '../../src/pool/wire/client-wire.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { until } from '../agent/agent.ts';
import { DirectEnds, KEY } from './direct-ends.ts';

const TO = { host: '127.0.0.1', port: 9, name: 'direct.x', secret: 'ab'.repeat(32) };

let dir: string;
let server: Server | undefined;
let client: LendingClient | undefined;
let complete = 0;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'older-'));
  complete = 0;
});
afterEach(async () => {
  await client?.close();
  server?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** A central manager that hears what is said to it. */
async function centralManager(hear: (channel: Channel<FromClient, ToClient>, message: FromClient) => void) {
  const socket = join(dir, 'clients');
  server = createServer((stream) => {
    const channel = new Channel<FromClient, ToClient>(stream, readFromClient);
    channel.open(
      (message) => hear(channel, message),
      () => undefined,
    );
  });
  await new Promise<void>((resolve) => server?.listen(socket, resolve));
  client = new LendingClient({
    socket,
    onReports: (_, isComplete) => {
      if (isComplete) complete += 1;
    },
    onChunk: () => undefined,
    onHome: () => Promise.reject(new Error('nothing is asked')),
    log: () => undefined,
  });
  void client.open();
  return client;
}

describe('a gateway beside a central manager of an earlier build', () => {
  it('learns that no worker connects by itself, and goes on, as that one hangs up at what it does not know', async () => {
    const made = await centralManager((channel, message) => {
      if (message.t === 'direct') channel.close('invalid message');
      else if (message.t === 'all') channel.send({ t: 'reports', id: message.id, reports: [] });
      else if (message.t === 'slots') channel.send({ t: 'slots', id: message.id, ads: [] });
    });
    await until('the connection', () => complete === 1 || undefined);
    await expect(made.direct(KEY, TO)).rejects.toThrow(/connection to the pool's central manager was lost/);
    await until('the next connection', () => complete === 2 || undefined);
    expect(await made.slots()).toEqual([]);
  });

  it('says that it speaks another version, and what to do', async () => {
    const made = await centralManager((channel, message) => {
      if (message.t !== 'open') return;
      channel.send({ t: 'denied', message: "it speaks version 0 of its clients' protocol, not 1", version: 0 });
      channel.close('another version');
    });
    const said = await until('the refusal', () => made.trouble);
    expect(said).toBe("it speaks version 0 of its clients' protocol, not 1; replace it: gryphus down, then gryphus up");
  });
});

describe('a worker of an earlier build', () => {
  it('is not asked to connect by itself, and its results come by the gateways', async () => {
    const ends = await new DirectEnds().open();
    const attempt = { client: 'flock', phase: 'ended', worker: 'w', request: { ad: { FlockFrom: '"p"' } } };
    const asked: unknown[] = [];
    const manager = { get: () => attempt, collector: { get: () => ({ texts: {} }) } };
    const workers = { askingOf: () => ({ ask: async (question: unknown) => void asked.push(question) }) };
    type Parameter<N extends number> = Parameters<typeof askDirect>[N];
    ends.tell = (key, to) =>
      askDirect(manager as unknown as Parameter<0>, workers as unknown as Parameter<1>, 'flock', {
        t: 'direct',
        id: 1,
        key,
        to,
      });
    const { files } = await ends.results.ask({ what: 'files', key: KEY, outputs: 'new' });
    expect([files, asked]).toEqual([[expect.objectContaining({ name: 'by-gateways' })], []]);
    expect(ends.logged.join()).toMatch(/its worker is of an earlier version/);
    ends.close();
  });
});
