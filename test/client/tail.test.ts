import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tail } from '../../src/client/tail.ts';
import { type AttemptKey, formatAttemptKey } from '../../src/job/ids.ts';
import type { LifeEvent } from '../../src/job/life.ts';
import type { Queue } from '../../src/queue/api.ts';
import { AttemptSpool } from '../../src/staging/streams.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';
import { procs } from '../queue/all.ts';

describe('following the output of a job', () => {
  let redis: TestRedis;
  let queue: Queue;
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-tail-'));
  beforeAll(async () => {
    redis = await startRedis();
    queue = await redis.open();
  });
  afterAll(async () => {
    await redis.stop();
    rmSync(dir, { recursive: true });
  });

  it('continues with the next attempt, even if the one before has its results home and is undecided', async () => {
    const spool = new AttemptSpool(dir);
    const clusterAd = { Owner: '"me"', Out: '"out"', Iwd: JSON.stringify(dir) };
    const { cluster } = await queue.submit({ clusterAd, procs: procs(1), manager: 'm', site: 's' });
    const id = { cluster, proc: 0 };
    const come = async (...events: LifeEvent[]) => {
      for (const event of events) expect(await queue.transition({ id, event })).toMatchObject({ ok: true });
    };
    const key = (attempt: number): AttemptKey => formatAttemptKey({ agent: queue.agent, ...id, attempt });
    const writes = (attempt: number, text: string) => spool.write(key(attempt), 'stdout', 0, Buffer.from(text));
    let said = '';
    let over = false;
    const follow = async () => {
      for await (const bytes of tail(queue, dir, { id, follow: true })) said += Buffer.from(bytes).toString();
      over = true;
    };
    await come('take', 'committed', 'started');
    await writes(1, 'first\n');
    const following = follow();
    await until(() => said === 'first\n');
    await come('ended', 'fetched');
    // Long enough to be read several times.
    await new Promise((resume) => setTimeout(resume, 700));
    expect(over).toBe(false);
    await spool.remove(key(1));
    await come('again', 'forgotten', 'take', 'committed', 'started');
    await writes(2, 'second\n');
    await until(() => said === 'first\nsecond\n');
    await come('remove', 'withdrawn');
    await following;
  });
});
