import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makeProxy, signDelegation } from '../../src/credentials/delegation.ts';
import { proxyInfo } from '../../src/credentials/proxy-info.ts';
import { loadProxy, loadUser } from '../../src/credentials/store.ts';
import { Proxies, WorkerProxies } from '../../src/pool/host/proxies.ts';
import { makeGridCa } from '../sites/grid-ca.ts';

const dir = mkdtempSync(join(tmpdir(), 'gry proxies '));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

it('are delegated to the pool, and from there to its workers, and no key travels', async () => {
  const ca = makeGridCa();
  try {
    const jane = ca.person('Jane Roe');
    chmodSync(jane.key, 0o600);
    const now = Math.floor(Date.now() / 1000);
    const user = await loadUser(jane.cert, jane.key);
    const ours = await makeProxy(user, { now, lifetime: 3600 });
    const home = new Proxies(join(dir, 'home'));
    await home.take('p', async (request) => signDelegation(request, ours, { now, lifetime: 3000 }));
    const said: string[] = [];
    const worker = new WorkerProxies(join(dir, 'worker'), async (name, key, request) => {
      said.push(`${key} ${name}`, request);
      const answer = home.sign(name, request);
      said.push(answer);
      return Buffer.from(answer);
    });
    const path = await worker.of('p', 'a.1.0.1');
    expect(await worker.of('p', 'a.2.0.1')).toBe(path);
    expect(said[0]).toBe('a.1.0.1 p');
    expect(said).toHaveLength(3);
    expect(said.join('\n')).not.toContain('PRIVATE KEY');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const [there, here] = [loadProxy(path), loadProxy(home.path('p'))];
    expect(there.chain).toHaveLength(ours.chain.length + 2);
    expect(proxyInfo(there.chain)).toMatchObject({ identity: proxyInfo(ours.chain).identity });
    expect(there.chain[0].notAfter).toBeLessThanOrEqual(here.chain[0].notAfter);

    // A renewed one is sent while jobs use it; one that is no longer used is requested again.
    const used = new Map([['p', 'a.1.0.1' as const]]);
    const soon = performance.now() + 590_000;
    await worker.renew(used, soon);
    expect([worker.isDue(soon), said.length]).toEqual([false, 3]);
    const later = performance.now() + 600_000;
    expect(worker.isDue(later)).toBe(true);
    await worker.renew(used, later);
    expect([worker.isDue(later), said.length]).toEqual([false, 6]);
    await worker.renew(new Map());
    await worker.of('p', 'a.3.0.1');
    expect(said[6]).toBe('a.3.0.1 p');

    // One that expires soon is replaced in time.
    await home.take('p', async (request) => signDelegation(request, ours, { now, lifetime: 60 }));
    await worker.renew(used, performance.now() + 600_000);
    expect([20_000, 40_000].map((ms) => worker.isDue(performance.now() + ms))).toEqual([false, true]);
  } finally {
    ca.stop();
  }
}, 60_000);
