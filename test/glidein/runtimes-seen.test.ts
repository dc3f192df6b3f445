import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { asAttributes, lacksRuntime, rememberRuntimes, runtimesSeen } from '../../src/glidein/runtimes-seen.ts';
import { expectedAd, maySuit } from '../../src/glidein/matches.ts';
import { adFrom } from '../../src/pool/wire/ads.ts';
import type { Kv } from '../../src/queue/api.ts';
import { startRedis, type TestRedis } from '../sites/redis.ts';

const SIF = adFrom({ WantContainer: 'true', Requirements: 'TARGET.HasContainer && TARGET.HasSIF' });
const PLAIN = adFrom({ Requirements: 'true' });
const GLIDEIN = {
  cores: 1,
  max: 1,
  walltime: 3600,
  gpus: 0,
  memoryMb: undefined,
  policy: 'always',
  attributes: {},
  resources: {},
  scratch: '',
} as const;

describe('what the pilots of a site were seen to run containers by', () => {
  let redis: TestRedis;
  let kv: Kv;
  beforeAll(async () => {
    redis = await startRedis();
    kv = (await redis.open()).kv;
  });
  afterAll(() => redis.stop());
  beforeEach(async () => {
    for (const { key } of await kv.list('glidein-runtimes')) await kv.delete('glidein-runtimes', key);
  });

  it('is remembered for a day, also when none is home', async () => {
    const none = { HasContainer: 'false', ContainerOfflineReason: '"podman: no user namespaces."' };
    const all = { HasContainer: 'true', HasSIF: 'true', HasDockerURL: 'true' };
    await rememberRuntimes(
      kv,
      [
        { site: 'bare', ad: none },
        { site: 'full', ad: all },
        { site: 'mixed', ad: none },
        { site: 'mixed', ad: all },
        { site: 'looking', ad: { Cpus: '1' } },
        { site: 'waiting' },
      ],
      1000,
    );
    const seen = await rememberRuntimes(kv, [], 2000);
    expect([...seen.keys()].sort()).toEqual(['bare', 'full', 'mixed']);
    expect(seen.get('bare')).toEqual({ at: 1000, has: [], message: 'podman: no user namespaces.' });
    expect(seen.get('mixed')?.has).toContain('HasSIF');
    expect((await runtimesSeen(kv, 1000 + 86_400)).size).toBe(0);
    // Another check reports the current state.
    await rememberRuntimes(kv, [{ site: 'bare', ad: all }], 3000);
    expect((await runtimesSeen(kv, 3000)).get('bare')?.has).toContain('HasContainer');
  });

  it('says where a job that needs a container gets no pilots: not where nothing is known', () => {
    const bare = { at: 0, has: [] };
    const docker = { at: 0, has: ['HasContainer', 'HasDockerURL'] };
    expect(lacksRuntime(SIF, bare)).toBe(true);
    expect(lacksRuntime(SIF, docker)).toBe(true);
    expect(lacksRuntime(PLAIN, bare)).toBe(false);
    const at = (seen?: typeof bare) => expectedAd({ name: 'a', glidein: GLIDEIN }, undefined, asAttributes(seen));
    expect(maySuit(SIF, at(bare))).toBe(false);
    expect(maySuit(SIF, at())).toBe(true);
    expect(maySuit(PLAIN, at(bare))).toBe(true);
  });
});
