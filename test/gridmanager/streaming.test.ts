import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { saveProxy } from '../../src/credentials/store.ts';
import { GrowingOutputs } from '../../src/gridmanager/streaming/growing.ts';
import { endOf, listOf, nextPart, type Part, startOver, suffixOf } from '../../src/gridmanager/streaming/parts.ts';
import { urlAccess } from '../../src/gridmanager/url-access.ts';
import { UrlOutputs } from '../../src/gridmanager/url-outputs.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { formatAttemptKey } from '../../src/job/ids.ts';
import { AttemptSpool } from '../../src/staging/streams.ts';
import { proxyFor } from '../gram/kit.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { type GridCa, makeGridCa } from '../sites/grid-ca.ts';
import { type GridFtp, GRIDFTP_PROGRAMS, startGridFtp } from '../sites/gridftp.ts';
import { waitUntil } from '../sites/ports.ts';

describe('the parts of a stream', () => {
  it('are whole lines without a gap, and few', () => {
    const writes = fc.array(fc.record({ text: fc.stringMatching(/^[a\n]{0,40}$/), waited: fc.nat(400_000) }));
    fc.assert(
      fc.property(writes, (all) => {
        let text = '';
        let parts: Part[] = [];
        for (const { text: more, waited } of all) {
          text += more;
          const offset = endOf(parts);
          const bytes = nextPart(Buffer.from(text.slice(offset)), parts, waited);
          if (bytes > 0) parts = [...parts, { name: suffixOf(1, offset), offset, bytes, sha256: '' }];
          expect(endOf(parts)).toBeLessThanOrEqual(text.length);
          if (parts.length > 0) expect(text.slice(0, endOf(parts))).toMatch(/\n$/);
          if (waited >= 300_000) expect(endOf(parts)).toBe(text.lastIndexOf('\n') + 1);
        }
        const over = startOver(
          { attempt: 1, version: 0, generation: 1, parts, stale: [] },
          { attempt: 2, version: 0 },
          20,
        );
        expect(endOf(over.parts)).toBeLessThanOrEqual(20);
        expect([...over.parts.map(({ name }) => name), ...over.stale]).toEqual(parts.map(({ name }) => name));
      }),
    );
  });
});

const MISSING = missingPrograms(GRIDFTP_PROGRAMS);

describe.skipIf(MISSING.length > 0)('a growing stream at a GridFTP server', () => {
  const dir = mkdtempSync(join(tmpdir(), 'gstream-'));
  let ca: GridCa;
  let server: GridFtp;
  const proxy = join(dir, 'proxy.pem');

  beforeAll(async () => {
    ca = makeGridCa();
    const jane = ca.person('Jane User');
    server = await startGridFtp(ca, [jane]);
    saveProxy(proxy, await proxyFor(jane));
    vi.stubEnv('X509_CERT_DIR', ca.trust);
  }, 60_000);
  afterAll(async () => {
    vi.unstubAllEnvs();
    await server?.stop();
    ca?.stop();
    rmSync(dir, { recursive: true, force: true });
  });

  const there = (name: string) => join(dir, 'there', name);
  const parts = () => {
    if (!existsSync(there('out.parts'))) return undefined;
    const lines = readFileSync(there('out.parts'), 'utf8').trim().split('\n');
    return lines
      .map((line) => {
        const [, , sum, suffix] = line.split(' ');
        const part = existsSync(there(`out${suffix}`)) ? readFileSync(there(`out${suffix}`)) : Buffer.alloc(0);
        return createHash('sha256').update(part).digest('hex') === sum ? part.toString() : '?';
      })
      .join('');
  };
  const until = (text: string) => waitUntil(text, () => parts() === text);

  it('starts over where another attempt does, goes on from a checkpoint, and is replaced by the whole', async () => {
    mkdirSync(there('.'), { recursive: true });
    const spool = new AttemptSpool(join(dir, 'spool'));
    const outputs = new UrlOutputs(
      urlAccess({ configDir: dir }, { 'urls.netrc': undefined, 'urls.ca': undefined }),
      Date.now,
    );
    const directory = join(dir, 'spool/.parts');
    const open = () => new GrowingOutputs({ spool, outputs, directory, everyMs: () => 50, log: () => undefined });
    let growing = open();
    const id = { cluster: 7, proc: 0 };
    const attrs = new Attrs({ x509userproxy: JSON.stringify(proxy) });
    const to = server.url(there('out'));
    const write = async (attempt: number, text: string) => {
      const key = formatAttemptKey({ agent: 'aaaaaaaaaa', ...id, attempt });
      await spool.prepare(key);
      appendFileSync(spool.streamPath(key, 'stdout'), text);
      growing.grew({ key, id, attempt, of: { kind: 'stdout' }, version: 0, attrs, to });
      return key;
    };
    let key = await write(1, 'a1\na2\nha');
    await until('a1\na2\n');
    await growing.stop(key);
    key = await write(2, 'b1\n');
    await until('b1\n');
    // What another process of ours goes on with.
    await growing.close();
    growing = open();
    await write(2, 'b2\n');
    await until('b1\nb2\n');
    // The site runs the same attempt again.
    await growing.restart(key, id);
    await spool.remove(key);
    await write(2, 'c1 longer than before\nc2\n');
    await until('c1 longer than before\nc2\n');
    await growing.stop(key);
    // A checkpoint of attempt 2 was made after the first line.
    const saved = join(dir, 'saved');
    writeFileSync(saved, 'c1 longer than before\n');
    await spool.checkpoints.keep(id, 2, [
      { kind: 'stdout', name: '', path: saved, bytes: 22, executable: false, mode: 0o600 },
    ]);
    key = await write(3, 'd2\n');
    await until('c1 longer than before\nd2\n');
    await growing.stop(key);
    const whole = join(dir, 'whole');
    writeFileSync(whole, 'c1 longer than before\nd2\n');
    await outputs.store(key, whole, to, proxy);
    await growing.whole(id, { kind: 'stdout' }, to, proxy);
    const stale = readdirSync(dirname(there('out'))).filter((name) => name !== 'out');
    // Parts that other runs replaced are removed as well.
    expect(stale).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  }, 60_000);
});

describe('the list of parts', () => {
  it('has a line for each', () => {
    expect(listOf([{ name: '.part-1-0', offset: 0, bytes: 3, sha256: 'ab' }])).toBe('0 3 ab .part-1-0\n');
  });
});
