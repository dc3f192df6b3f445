import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { saveProxy } from '../../src/credentials/store.ts';
import { gsiftpFetcher } from '../../src/staging/url/gsiftp.ts';
import { Part } from '../../src/staging/url/part.ts';
import { proxyFor, seconds } from '../gram/kit.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';
import { type GridFtp, GRIDFTP_PROGRAMS, startGridFtp } from '../sites/gridftp.ts';
import { freePort, waitUntil } from '../sites/ports.ts';

const MISSING = missingPrograms(GRIDFTP_PROGRAMS);
const dir = mkdtempSync(join(tmpdir(), 'gsiftp-'));
let ca: GridCa;
let jane: Person;
let server: GridFtp;
let proxyFile: string;

beforeAll(async () => {
  if (MISSING.length > 0) return;
  ca = makeGridCa();
  jane = ca.person('Jane User');
  server = await startGridFtp(ca, [jane]);
  proxyFile = join(dir, 'proxy.pem');
  saveProxy(proxyFile, await proxyFor(jane));
  vi.stubEnv('X509_CERT_DIR', ca.trust);
}, 60_000);
afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.stop();
  ca?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const there = (name: string) => join(dir, 'there ', name);
const url = (path: string) => new URL(server.url(path.split('/').map(encodeURIComponent).join('/')));
const fetch = (path: string, to: string, more = {}) =>
  gsiftpFetcher.fetch(url(path), join(dir, to), { proxyFile, ...more });
const failure = async (made: Promise<unknown> | undefined) => {
  const thrown: unknown = await made?.then(
    () => undefined,
    (error: unknown) => error,
  );
  return thrown as { code: string; message: string };
};

describe.skipIf(MISSING.length > 0)('files by gsiftp URLs', () => {
  it('come whole, verified, and not again while they are the same', async () => {
    const data = randomBytes(3_000_000);
    const path = join(dir, "o'dd näme");
    writeFileSync(path, data);
    const first = await fetch(path, 'came');
    expect(first).toMatchObject({ same: false });
    expect(readFileSync(join(dir, 'came')).equals(data)).toBe(true);
    expect(await fetch(path, 'again', { have: first.version })).toEqual({ version: first.version, same: true });
    expect(existsSync(join(dir, 'again'))).toBe(false);
    await expect.poll(() => server.log()).toMatch(/CKSM SHA256/);
  });

  it('continue where a transfer broke off, and begin again if what is here is wrong', async () => {
    const data = randomBytes(5_000_000);
    const path = join(dir, 'large');
    writeFileSync(path, data);
    const { version } = await fetch(path, 'whole');
    const part = new Part(join(dir, 'resumed'));
    await part.begin(version);
    writeFileSync(part.path, data);
    truncateSync(part.path, 2_000_000);
    await fetch(path, 'resumed');
    expect(readFileSync(join(dir, 'resumed')).equals(data)).toBe(true);
    await expect.poll(() => server.log()).toMatch(/REST 2000000[^]*NBYTES=3000000/);
    const spoilt = new Part(join(dir, 'spoilt'));
    await spoilt.begin(version);
    writeFileSync(spoilt.path, Buffer.alloc(2_000_000));
    expect(await failure(fetch(path, 'spoilt'))).toMatchObject({ code: 'url-unreachable' });
    await fetch(path, 'spoilt');
    expect(readFileSync(join(dir, 'spoilt')).equals(data)).toBe(true);
  });

  it('wait for a fresh proxy if theirs expires on the way, and continue at the same byte', async () => {
    const data = randomBytes(30_000_000);
    const path = join(dir, 'long');
    writeFileSync(path, data);
    const brief = join(dir, 'brief.pem');
    const end = seconds() + 8;
    saveProxy(brief, await proxyFor(jane, { lifetime: end - seconds() }));
    const part = new Part(join(dir, 'waits'));
    await part.drop();
    const here = () => (existsSync(part.path) ? statSync(part.path).size : 0);
    // The connection is lost when part of it has arrived.
    const cut = new AbortController();
    const watch = setInterval(() => here() > 0 && cut.abort(), 1);
    const broken = await failure(fetch(path, 'waits', { proxyFile: brief, signal: cut.signal }));
    clearInterval(watch);
    expect(broken).toMatchObject({ code: 'url-unreachable' });
    const came = here();
    expect(came).toBeGreaterThan(0);
    expect(came).toBeLessThan(data.length);
    await waitUntil('the end of the proxy', () => seconds() > end);
    expect(await failure(fetch(path, 'waits', { proxyFile: brief }))).toMatchObject({
      code: 'input-missing',
      message: expect.stringContaining(`the proxy ${brief} ended at`),
    });
    expect(here()).toBe(came);
    saveProxy(brief, await proxyFor(jane));
    await fetch(path, 'waits', { proxyFile: brief });
    expect(readFileSync(join(dir, 'waits')).equals(data)).toBe(true);
    await expect.poll(() => server.log()).toMatch(new RegExp(`REST ${came}[^]*NBYTES=${data.length - came}`));
  });

  it('are put there under their name when they are whole', async () => {
    const data = randomBytes(2_000_000);
    const from = join(dir, 'result');
    writeFileSync(from, data);
    const to = join(dir, 'stored');
    for (const content of ['old', undefined]) {
      if (content !== undefined) writeFileSync(to, content);
      await gsiftpFetcher.store?.(from, url(to), { proxyFile });
      expect(readFileSync(to).equals(data)).toBe(true);
    }
    expect(readdirSync(dir).filter((name) => name.includes('.part'))).toEqual([]);
  });

  it('are refused in one sentence', async () => {
    const eve = join(dir, 'eve.pem');
    saveProxy(eve, await proxyFor(ca.person('Eve Other')));
    const ended = join(dir, 'ended.pem');
    saveProxy(ended, await proxyFor(jane, { now: seconds() - 240, lifetime: 180 }));
    const mallory = makeGridCa({ name: 'Another CA' });
    const stranger = join(dir, 'stranger.pem');
    saveProxy(stranger, await proxyFor(mallory.person('Jane User')));
    mallory.stop();
    writeFileSync(join(dir, 'there'), 'x');
    const by = (file: string) => failure(fetch(join(dir, 'there'), 'never', { proxyFile: file }));
    expect(await by(eve)).toMatchObject({
      code: 'input-missing',
      message: expect.stringContaining('refused the log-in'),
    });
    expect(await by(ended)).toMatchObject({ code: 'input-missing', message: expect.stringContaining('ended at') });
    expect(await by(stranger)).toMatchObject({ code: 'input-missing' });
    expect(await by(join(dir, 'no such proxy'))).toMatchObject({ code: 'input-missing' });
    expect(await failure(fetch(there('no such file'), 'never'))).toMatchObject({ code: 'input-missing' });
    const unwritable = gsiftpFetcher.store?.(join(dir, 'there'), url('/proc/none/x'), { proxyFile });
    expect(await failure(unwritable)).toMatchObject({ code: 'output-unwritable' });
    const nobody = new URL(`gsiftp://localhost:${await freePort()}/x`);
    expect(await failure(gsiftpFetcher.fetch(nobody, join(dir, 'never'), { proxyFile }))).toMatchObject({
      code: 'url-unreachable',
    });
  });

  it('are not fetched from a server that is not the one that was meant', async () => {
    writeFileSync(join(dir, 'there'), 'x');
    const address = new URL(`gsiftp://127.0.0.1:${server.port}${join(dir, 'there')}`);
    const error = await failure(gsiftpFetcher.fetch(address, join(dir, 'never'), { proxyFile }));
    expect(error).toMatchObject({ code: 'input-missing', message: expect.stringContaining('does not name 127.0.0.1') });
  });
});
