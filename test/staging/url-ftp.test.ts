import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { ftpFetcher } from '../../src/staging/url/ftp.ts';
import { Part } from '../../src/staging/url/part.ts';
import { type Ftpd, skipWithoutFtpd, startFtpd } from '../sites/ftpd.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

describe.skipIf(skipWithoutFtpd()).each([{ tls: false }, { tls: true }])(
  'files by a real FTP server (tls: $tls)',
  ({ tls }) => {
    let ftpd: Ftpd;
    let dir: string;
    const content = randomBytes(400_000);

    beforeAll(async () => {
      ftpd = await startFtpd({ tls });
    });
    afterAll(() => ftpd.stop());
    beforeEach(() => {
      dir = mkdtempSync(join(tmpdir(), 'gurl-'));
    });
    afterEach(() => rmSync(dir, { recursive: true, force: true }));

    const url = (name: string) =>
      new URL(`${tls ? 'ftps' : 'ftp'}://localhost:${ftpd.port}/${encodeURIComponent(name)}`);
    const options = () => ({
      login: { user: ftpd.user, password: ftpd.password },
      ...(tls ? { ca: readFileSync(ftpd.ca, 'utf8') } : {}),
    });
    const there = (name: string, bytes: Uint8Array) => writeFileSync(join(ftpd.files, name), bytes, { mode: 0o666 });

    it.each(['data', ' a name with "odd" $(bytes) é# '])('come whole: %j', async (name) => {
      there(name, content);
      const to = join(dir, 'file');
      const first = await ftpFetcher.fetch(url(name), to, options());
      expect(readFileSync(to).equals(content)).toBe(true);
      expect(first.version).toBeDefined();
      expect(await ftpFetcher.fetch(url(name), to, { ...options(), have: first.version ?? '' })).toMatchObject({
        same: true,
      });
    });

    it('continue where they were cut, unless the content has changed', async () => {
      there('cut', content);
      const to = join(dir, 'file');
      const { version } = await ftpFetcher.fetch(url('cut'), to, options());
      const part = new Part(to);
      await part.begin(version);
      // Not the server's bytes: if they are still there, they were not sent again.
      const own = Buffer.alloc(100_000, 'o');
      writeFileSync(part.path, own);
      await ftpFetcher.fetch(url('cut'), to, options());
      expect(readFileSync(to).equals(Buffer.concat([own, content.subarray(own.length)]))).toBe(true);
      await part.begin(version);
      writeFileSync(part.path, own);
      utimesSync(join(ftpd.files, 'cut'), 1000, 1000);
      await ftpFetcher.fetch(url('cut'), to, options());
      expect(readFileSync(to).equals(content)).toBe(true);
    });

    it('are put whole under their name, over what is there, going on with a part', async () => {
      const from = join(dir, 'out');
      writeFileSync(from, content);
      await ftpFetcher.store?.(from, url('result'), options());
      expect(readFileSync(join(ftpd.files, 'result')).equals(content)).toBe(true);
      // As above: our own bytes show that only the rest was sent.
      const sha = createHash('sha256').update(content).digest('hex');
      const own = Buffer.alloc(100_000, 'o');
      const part = join(ftpd.files, `.gryphus-${sha.slice(0, 24)}.part`);
      there(basename(part), own);
      chmodSync(part, 0o666);
      await ftpFetcher.store?.(from, url('result'), options());
      expect(readFileSync(join(ftpd.files, 'result')).equals(Buffer.concat([own, content.subarray(own.length)]))).toBe(
        true,
      );
      writeFileSync(from, Buffer.from('shorter'));
      await ftpFetcher.store?.(from, url('result'), options());
      expect(readFileSync(join(ftpd.files, 'result'), 'utf8')).toBe('shorter');
      expect(readdirSync(ftpd.files).filter((name) => name.startsWith('.gryphus'))).toEqual([]);
    });

    it('say what is wrong in one sentence', async () => {
      const to = join(dir, 'file');
      await expect(ftpFetcher.fetch(url('nothing'), to, options())).rejects.toMatchObject({ code: 'input-missing' });
      there('data', content);
      const wrong = { ...options(), login: { user: ftpd.user, password: 'wrong' } };
      const refusal = ftpFetcher.fetch(url('data'), to, wrong);
      await expect(refusal).rejects.toThrow(/the log-in from netrc for localhost is refused/);
      await expect(refusal).rejects.not.toThrow(/wrong/);
      if (!tls) return;
      await expect(ftpFetcher.fetch(url('data'), to, { login: options().login })).rejects.toMatchObject({
        code: 'input-missing',
        message: expect.stringContaining('is not trusted'),
      });
      const plain = new URL(url('data').href.replace('ftps:', 'ftp:'));
      await expect(ftpFetcher.fetch(plain, to, options())).rejects.toThrow('write ftps://');
    });

    it('are put into directories that were not there, and refused where the server refuses', async () => {
      const from = join(dir, 'out');
      writeFileSync(from, 'result');
      const at = (path: string) => new URL(url('').href + path);
      await ftpFetcher.store?.(from, at('results/a%20b/7.0/out'), options());
      expect(readFileSync(join(ftpd.files, 'results/a b/7.0/out'), 'utf8')).toBe('result');
      // The server closes the data connection before it says why.
      mkdirSync(join(ftpd.files, 'closed'), { mode: 0o555 });
      await expect(ftpFetcher.store?.(from, at('closed/out'), options())).rejects.toMatchObject({
        code: 'output-unwritable',
        message: expect.stringContaining('550 '),
      });
    });

    it('a server that went away may come back', async () => {
      const other = await startFtpd({ tls });
      const gone = new URL(`${tls ? 'ftps' : 'ftp'}://localhost:${other.port}/x`);
      await other.stop();
      await expect(ftpFetcher.fetch(gone, join(dir, 'file'), {})).rejects.toMatchObject({ code: 'url-unreachable' });
    });
  },
);
