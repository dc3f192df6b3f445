import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FromClient, readFromClient, type ToClient } from '../../src/pool/wire/client-wire.ts';
import { Channel } from '../../src/pool/wire/frames.ts';
import { openPoolSite } from '../../src/pool/pool-site.ts';

describe('the pool as a site', () => {
  let dir: string;
  let server: Server;
  let centralManager: Channel<FromClient, ToClient> | undefined;

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'gry-central-manager-'));
    server = createServer((socket) => {
      const channel = new Channel<FromClient, ToClient>(socket, readFromClient);
      centralManager = channel;
      channel.open(
        (message) => {
          if (message.t === 'all') channel.send({ t: 'reports', id: message.id, reports: [] });
        },
        () => undefined,
      );
    });
    await new Promise<void>((resolve) => server.listen(join(dir, 'central-manager'), resolve));
  });
  afterEach(() => {
    server.close();
    rmSync(dir, { recursive: true });
  });

  it('says again what its last answer said, until that was recorded', async () => {
    const site = openPoolSite({
      name: 'pool',
      socket: join(dir, 'central-manager'),
      client: 'me',
      proxies: join(dir, 'proxies'),
    });
    const poll = async (cursor: string | undefined) => {
      const answer = await site.poll({ cursor, follow: [], waitMs: 50 });
      return { cursor: answer.cursor, keys: answer.reports.map(({ key }) => key) };
    };
    const first = await poll(undefined);
    centralManager?.send({ t: 'reports', reports: [{ key: 'a.1.0.1', is: 'queued' }] });
    const second = await poll(first.cursor);
    expect(second.keys).toEqual(['a.1.0.1']);
    // The queue was not available when that should have been recorded.
    const again = await poll(first.cursor);
    expect(again.keys).toEqual(['a.1.0.1']);
    expect((await poll(again.cursor)).keys).toEqual([]);
    await site.close();
  });
});
