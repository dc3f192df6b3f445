import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect as show } from 'node:util';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeProxy } from '../../src/credentials/delegation.ts';
import { inspect } from '../../src/credentials/sources.ts';
import { loadProxy, loadUser } from '../../src/credentials/store.ts';
import { readProxyFile, writeProxyFile } from '../../src/credentials/x509/proxy-file.ts';
import { GryphusError } from '../../src/errors.ts';
import { type GridCa, makeGridCa } from '../sites/grid-ca.ts';

const PASSPHRASE = 'pl4nted passphrase';
const dir = mkdtempSync(join(tmpdir(), 'sec-'));
let ca: GridCa;
let proxy: Buffer;
let body: string;

beforeAll(async () => {
  ca = makeGridCa();
  const jane = ca.person('Jane User');
  proxy = writeProxyFile(
    await makeProxy(await loadUser(jane.cert, jane.key), { now: Date.now() / 1000, keyType: 'ec' }),
  );
  body = /PRIVATE KEY-----\n([\s\S]*?)-----END PRIVATE/.exec(proxy.toString())?.[1]?.replaceAll('\n', '') ?? '';
});
afterAll(() => {
  ca.stop();
  rmSync(dir, { recursive: true });
});

/** Everything about an error that could be printed, including causes and hidden fields. */
function leaks(thrown: unknown): boolean {
  const text = show(thrown, { depth: 10, showHidden: true, maxStringLength: null, maxArrayLength: null });
  const runs = Array.from({ length: Math.max(0, body.length - 20) }, (_, i) => body.slice(i, i + 20));
  const raw = Buffer.from(body, 'base64').toString('hex');
  return text.includes(PASSPHRASE) || runs.some((run) => text.includes(run)) || text.includes(raw.slice(-64));
}

describe('no error tells a secret', () => {
  it('of a proxy file, however it is damaged', () => {
    expect(body.length).toBeGreaterThan(150);
    const { length } = proxy;
    const file = join(dir, 'p');
    fc.assert(
      fc.property(fc.nat(length - 1), fc.nat(255), fc.nat(length), fc.boolean(), (at, value, cut, whole) => {
        const damaged = Buffer.from(whole ? proxy : proxy.subarray(0, cut));
        if (at < damaged.length) damaged[at] = value;
        writeFileSync(file, damaged, { mode: 0o600 });
        const thrown: unknown[] = [];
        for (const attempt of [() => readProxyFile(damaged, file), () => loadProxy(file)]) {
          try {
            attempt();
          } catch (error) {
            thrown.push(error);
          }
        }
        expect(thrown.every((error) => error instanceof GryphusError)).toBe(true);
        expect(thrown.some(leaks)).toBe(false);
        expect(leaks(inspect({ kind: 'x509-proxy', name: 'jane', file }))).toBe(false);
      }),
      { numRuns: 400 },
    );
  });

  it('of a locked key, with the wrong or the right passphrase', async () => {
    const locked = ca.person('Locked', { passphrase: PASSPHRASE });
    const other = ca.person('Other');
    const attempts = [
      loadUser(locked.cert, locked.key, () => Promise.resolve(Buffer.from(`${PASSPHRASE} not`))),
      loadUser(other.cert, locked.key, () => Promise.resolve(Buffer.from(PASSPHRASE))),
      loadUser(other.key, locked.key, () => Promise.resolve(Buffer.from(PASSPHRASE))),
      loadUser(locked.cert, locked.cert, () => Promise.resolve(Buffer.from(PASSPHRASE))),
    ];
    for (const attempt of await Promise.allSettled(attempts)) {
      expect(attempt.status).toBe('rejected');
      expect(attempt.status === 'rejected' && leaks(attempt.reason)).toBe(false);
    }
  });
});
