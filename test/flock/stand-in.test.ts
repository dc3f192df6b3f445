import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StandIn } from '../../src/flock/stand-in.ts';
import { nonce, proof } from '../../src/pool/wire/auth.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { type FromCentralManager, type FromWorker, readFromWorker } from '../../src/pool/wire/wire.ts';
import { until } from '../agent/agent.ts';

const TOKEN = { id: 't', secret: 'ab'.repeat(32) };

let dir = '';
let server: Server | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'stand-in-'));
});
afterEach(() => {
  server?.close();
  rmSync(dir, { recursive: true, force: true });
});

it('a worker that stands for a partner has a disk from its first greeting, as the central manager keeps that size', async () => {
  const socket = join(dir, 'workers');
  const said: FromWorker[] = [];
  server = createServer((stream) => {
    const channel = new Channel<FromWorker, FromCentralManager>(stream, readFromWorker);
    channel.open(
      (message) => {
        said.push(message);
        if (message.t !== 'hello') return;
        const ours = nonce();
        channel.send({ t: 'challenge', nonce: ours, proof: proof(TOKEN, 'central-manager', ours, message.nonce) });
      },
      () => undefined,
    );
  });
  await new Promise<void>((resolve) => server?.listen(socket, resolve));
  // With jobs of an earlier process, it connects before anything is offered.
  const standIn = new StandIn({
    pool: 'c via b',
    hops: 1,
    worker: 'c~via~b',
    token: TOKEN,
    socket,
    held: () => [],
    take: () => undefined,
    log: () => undefined,
  });
  standIn.open();
  const greeting = await until('the greeting', () => said.find(({ t }) => t === 'proof'));
  expect(greeting).toMatchObject({ size: { cpus: 0, diskKb: 2 ** 40 } });
  standIn.close('over');
});
