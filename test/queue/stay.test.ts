import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import { Secrets } from '../../src/gridmanager/chirp/secrets.ts';
import { CredentialGate } from '../../src/gridmanager/credential-gate.ts';
import { ProxyPrograms } from '../../src/gridmanager/io-proxy-programs.ts';
import { GridManager } from '../../src/gridmanager/manager.ts';
import { staying, stayUntil } from '../../src/queue/stay.ts';
import { urlAccess } from '../../src/gridmanager/url-access.ts';
import { startRedis } from '../sites/redis.ts';

it('a manager without work ends, but not while somebody who logged in has its connection kept', async () => {
  const redis = await startRedis();
  const queue = await redis.open();
  const manager = new GridManager({
    identity: 'me',
    queue,
    spoolDir: join(redis.stateDir, 'spool'),
    hungAfterMs: () => 90_000,
    loadSite: async (name) => (name === LOCAL_SITE.name ? LOCAL_SITE : undefined),
    loadSites: async () => new Map([[LOCAL_SITE.name, LOCAL_SITE]]),
    problem: () => undefined,
    retry: () => ({ min: 1000, max: 300_000 }),
    openSite: () => Promise.reject(new Error('no site is needed')),
    gate: new CredentialGate({
      load: () => Promise.reject(new Error('no job here needs a credential')),
      limits: { holdBefore: 60, skew: 0 },
      now: Date.now,
    }),
    secrets: new Secrets([]),
    remoteIo: () => [],
    ioProxy: new ProxyPrograms(() => expect.unreachable()),
    urls: urlAccess({ configDir: redis.stateDir }, { 'urls.netrc': undefined, 'urls.ca': undefined }),
    streamEveryMs: () => 10_000,
    lingerMs: 100,
    log: () => undefined,
    onFault: (message) => expect.unreachable(message),
  });
  const until = Date.now() + 2000;
  await stayUntil(queue, 'me', until);
  // A later failed log-in must not shorten it.
  await stayUntil(queue, 'me', until - 1500);
  expect([...(await staying(queue, Date.now()))]).toEqual(['me']);
  await manager.run();
  expect(Date.now()).toBeGreaterThanOrEqual(until);
  expect([...(await staying(queue, Date.now()))]).toEqual([]);
  await redis.stop();
});
