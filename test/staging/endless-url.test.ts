import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { UrlInputs } from '../../src/gridmanager/url-inputs.ts';
import { httpFetcher } from '../../src/staging/url/http.ts';
import { Part } from '../../src/staging/url/part.ts';
import { until } from '../agent/agent.ts';

let dir: string;
let server: Server;
let open = 0;

/** Content without a length and without an end, 500 KB a second at most. */
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'gurl-'));
  open = 0;
  server = createServer((_, response) => {
    open += 1;
    const timer = setInterval(() => response.write(Buffer.alloc(5000)), 10);
    response.on('close', () => {
      clearInterval(timer);
      open -= 1;
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
  rmSync(dir, { recursive: true, force: true });
});

const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/endless`;

it('an input that no job waits for any more is not fetched on', async () => {
  const access = {
    fetchers: [httpFetcher],
    schemes: ['http'],
    optionsFor: async () => ({}),
    hasLogin: () => false,
  };
  const inputs = new UrlInputs(dir, access, Date.now, 500);
  expect(inputs.look(url(), undefined, () => undefined).is).toBe('coming');
  await until('it to come', () => open > 0 || undefined, 10_000);
  // As long as a job asks, it goes on.
  for (const end = performance.now() + 1200; performance.now() < end; ) {
    expect(inputs.look(url(), undefined, () => undefined).is).toBe('coming');
    await new Promise((resume) => setTimeout(resume, 50));
  }
  expect(open).toBe(1);
  await until('it to be stopped', () => open === 0 || undefined, 10_000);
  // Asked for again, it is fetched again.
  await until('it to come again', () => {
    inputs.look(url(), undefined, () => undefined);
    return open > 0 || undefined;
  });
  await inputs.close();
}, 30_000);

it('endless content leaves space on the disk, and nothing of it stays', async ({ skip }) => {
  const disk = join(dir, 'disk');
  try {
    execFileSync('sh', ['-c', 'mkdir "$1" && mount -t tmpfs -o size=16m none "$1"', 'sh', disk], { stdio: 'ignore' });
  } catch {
    return skip('only root can make a small disk');
  }
  try {
    writeFileSync(join(disk, 'others'), Buffer.alloc(15_000_000));
    let least = Number.POSITIVE_INFINITY;
    const timer = setInterval(() => {
      const { bavail, bsize } = statfsSync(disk);
      least = Math.min(least, bavail * bsize);
    }, 5);
    await expect(httpFetcher.fetch(new URL(url()), join(disk, 'file'), {})).rejects.toMatchObject({
      code: 'disk-full',
    });
    clearInterval(timer);
    expect(least).toBeGreaterThan(0);
    expect(readdirSync(disk)).toEqual(['others']);
  } finally {
    execFileSync('umount', [disk]);
  }
}, 30_000);

it('no more is written than was announced', async () => {
  const part = new Part(join(dir, 'file'));
  const endless = Readable.from(
    (async function* () {
      for (;;) {
        yield Buffer.alloc(10_000);
        await new Promise((resume) => setTimeout(resume, 1));
      }
    })(),
  );
  await expect(part.write(0, (file) => pipeline(endless, file), 50_000)).rejects.toMatchObject({
    code: 'url-unreachable',
    message: '50000 bytes were announced, and more came.',
  });
  expect(existsSync(join(dir, 'file'))).toBe(false);
  expect(statSync(join(dir, 'file.part')).size).toBeLessThan(10_000_000);
});
