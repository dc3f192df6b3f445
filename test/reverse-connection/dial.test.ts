import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { dialHome } from '../../src/reverse-connection/dial.ts';
import type { Way } from '../../src/reverse-connection/home.ts';
import { acceptHome } from '../../src/reverse-connection/secure.ts';

describe('a worker that dials home', () => {
  let dir: string;
  let server: Server;
  const key = randomBytes(32);

  beforeEach(async () => {
    dir = mkdtempSync('/tmp/gry-dial-');
    server = createServer((raw) => {
      acceptHome(raw, { keyOf: () => key }).then(
        ({ link }) => link.end('welcome'),
        () => undefined,
      );
    });
    await new Promise<void>((resolve) => server.listen(join(dir, 'way'), resolve));
  });
  afterEach(() => {
    server.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('goes the first way that leads there, and reads the ways again each time', async () => {
    const waysFile = join(dir, 'ways.json');
    const home = { worker: 'p1', key: key.toString('hex'), waysFile, ways: [] };
    await expect(dialHome(home)).rejects.toThrow('The agent cannot be reached (no reverse connection is known).');
    const ways: Way[] = [
      { kind: 'socket', path: join(dir, 'nobody') },
      { kind: 'port', host: '127.0.0.1', port: 1 },
    ];
    writeFileSync(waysFile, JSON.stringify(ways));
    await expect(dialHome(home)).rejects.toThrow(/nobody: .*ENOENT.*; 127\.0\.0\.1:1: .*ECONNREFUSED/);
    writeFileSync(waysFile, JSON.stringify([...ways, { kind: 'socket', path: join(dir, 'way') }]));
    const failed: string[] = [];
    const link = await dialHome(home, { onFailed: (way) => failed.push(way.kind) });
    expect(failed).toEqual(['socket', 'port']);
    const chunks: Buffer[] = [];
    for await (const chunk of link) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toBe('welcome');
  });
});
