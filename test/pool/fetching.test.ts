import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fetching } from '../../src/pool/central-manager/fetching.ts';
import { Asking } from '../../src/pool/wire/asking.ts';
import type { WireAsk } from '../../src/pool/wire/wire.ts';
import type { FetchOutcome, FetchRequest } from '../../src/site/contract.ts';
import { deferred } from '../../src/util/deferred.ts';
import { endedAttempt } from './ended-attempt.ts';

const KEY = 'a.1.0.1';
const MANY = 500;

describe("results from a worker's files", () => {
  let into: string;
  let asked: WireAsk[];
  let release: () => void;
  let listed: Promise<void>;

  beforeEach(() => {
    into = mkdtempSync(join(tmpdir(), 'gry-fetching-'));
    asked = [];
    const held = deferred<void>();
    release = () => held.resolve();
    listed = held.promise;
  });
  afterEach(() => rmSync(into, { recursive: true, force: true }));

  /** A worker with many small files and one of three pieces, which lists them when `release` was called. */
  function worker(): Asking {
    const large = Buffer.alloc(3 * (1 << 19), 'large');
    const asking = new Asking((ask) => {
      asked.push(ask);
      const say = (more: { files?: { name: string; bytes: number; executable: boolean }[] }, bytes = Buffer.alloc(0)) =>
        asking.take({ t: 'answer', id: ask.id, ok: true, ...more }, bytes);
      if (ask.what === 'files') {
        const small = Array.from({ length: MANY }, (_, i) => ({ name: `out/f${i}`, bytes: 3, executable: false }));
        const files = [...small, { name: 'out/large', bytes: large.length, executable: true }];
        void listed.then(() => say({ files }));
      } else if (ask.what === 'read') {
        const all = ask.path.endsWith('large') ? large : Buffer.from('abc');
        setImmediate(() => say({}, all.subarray(ask.offset, ask.offset + ask.bytes)));
      }
      return true;
    });
    return asking;
  }

  function fetching(asking: Asking): Fetching {
    const attempt = endedAttempt(KEY);
    const centralManager = {
      get: (key: string) => (key === KEY ? attempt : undefined),
      whenSaved: (call: () => void) => call(),
      deadWorkers: {
        isOrphan: () => false,
        bereave: () => {
          throw new Error('its worker is there');
        },
      },
      sharing: { rules: { downloads: 0 } },
      collector: { get: () => undefined },
    };
    return new Fetching(centralManager, {
      whenBack: async () => asking,
      send: () => undefined,
      staging: () => undefined,
    });
  }

  const request = (): FetchRequest => ({ key: KEY, outputs: ['out'], stdout: false, stderr: false, into });
  const lists = () => asked.filter(({ what }) => what === 'files').length;

  /** As a client does, which is told "later" while they are on their way. */
  async function untilCome(some: Fetching): Promise<FetchOutcome> {
    for (;;) {
      const outcome = await some.fetch(request());
      if (outcome.ok || outcome.refusal.code !== 'arriving') return outcome;
    }
  }

  it('are brought once, although they come when nobody is asking', async () => {
    const some = fetching(worker());
    expect(await some.fetch(request())).toMatchObject({ ok: false, refusal: { code: 'arriving' } });
    release();
    await expect.poll(() => asked.length, { timeout: 20_000 }).toBeGreaterThan(MANY);
    // Until the last of them is written, nobody asks.
    await expect.poll(() => readFileSync(join(into, 'out/large')).length, { timeout: 20_000 }).toBe(3 * (1 << 19));
    const came = await untilCome(some);
    expect(came.ok && came.files.length).toBe(MANY + 1);
    expect(lists()).toBe(1);
    expect(readFileSync(join(into, 'out/f7'), 'utf8')).toBe('abc');
  }, 60_000);

  it('are brought again if their directory was deleted meanwhile', async () => {
    const some = fetching(worker());
    expect(await some.fetch(request())).toMatchObject({ ok: false, refusal: { code: 'arriving' } });
    release();
    await expect.poll(() => readFileSync(join(into, 'out/large')).length, { timeout: 20_000 }).toBe(3 * (1 << 19));
    rmSync(into, { recursive: true });
    const came = await untilCome(some);
    expect(came.ok && came.files.length).toBe(MANY + 1);
    expect(lists()).toBe(2);
  }, 60_000);

  it('are not asked for again if they are refused for good', async () => {
    const asking: Asking = new Asking((ask) => {
      asked.push(ask);
      setImmediate(() =>
        asking.take({ t: 'answer', id: ask.id, ok: false, message: 'too large.', refused: true }, Buffer.alloc(0)),
      );
      return true;
    });
    const refusal = { kind: 'never', code: 'site-refused', message: 'too large.' };
    expect(await untilCome(fetching(asking))).toMatchObject({ ok: false, refusal });
    expect(lists()).toBe(1);
  });

  it('have many requests under way, so that a far worker costs no round trip for each', async () => {
    let most = 0;
    let waiting = 0;
    const near = worker();
    const far = new Asking((ask) => {
      waiting += ask.what === 'read' ? 1 : 0;
      most = Math.max(most, waiting);
      void near.ask(ask).then(({ bytes, t: _t, id: _id, ...answer }) => {
        waiting -= ask.what === 'read' ? 1 : 0;
        far.take({ t: 'answer', id: ask.id, ...answer }, bytes);
      });
      return true;
    });
    release();
    const came = await untilCome(fetching(far));
    expect(came.ok).toBe(true);
    expect(most).toBeGreaterThanOrEqual(32);
  }, 60_000);
});
