import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import { localFork } from '../conformance/grounds.ts';
import { freshKey, type Ground, ledgerJob, starts, Watch } from '../conformance/kit.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await localFork({ slots: 4 });
});
afterAll(() => ground.close());

describe('an attempt that starts only with permission', { timeout: 60_000 }, () => {
  async function asking(leaveWithin: number) {
    const site = await ground.open();
    const watch = new Watch(site);
    const key = freshKey();
    await site.prepare([ledgerJob(ground, key, 'exit 3', { leaveWithin })]);
    await site.commit([key]);
    await watch.until(key, (report) => report.is === 'asking', ground.patience);
    expect(starts(ground, key)).toBe(0);
    return { site, watch, key };
  }

  async function endsOnce(watch: Watch, key: AttemptKey): Promise<void> {
    const end = await watch.until(key, (report) => report.is === 'ended', ground.patience);
    expect(end).toMatchObject({ how: { kind: 'exited', code: 3 } });
    expect(starts(ground, key)).toBe(1);
    await watch.site.forget([key]);
  }

  it('asks, waits, and starts once, however often the permission comes', async () => {
    const { site, watch, key } = await asking(60);
    // Another client without any state receives the question too.
    const other = new Watch(await ground.open());
    await other.until(key, (report) => report.is === 'asking', ground.patience);
    for (let turn = 0; turn < 3; turn++) expect((await site.leave?.([key]))?.get(key)).toEqual({ ok: true });
    await endsOnce(watch, key);
    expect((await site.leave?.([key]))?.get(key)).toMatchObject({ ok: false, refusal: { kind: 'gone' } });
  });

  it('gives its slot up without a start permit, has not started, and may be committed again', async () => {
    const { site, watch, key } = await asking(1);
    await watch.until(key, (report) => report.is === 'lost', ground.patience);
    expect(starts(ground, key)).toBe(0);
    await site.commit([key]);
    await watch.until(key, (report) => report.is === 'asking', ground.patience);
    await site.leave?.([key]);
    // On a busy machine a second is short: the permission may have arrived after it, and is kept then.
    const next = await watch.until(key, ({ is }) => is === 'ended' || is === 'lost', ground.patience);
    if (next.is === 'lost') await site.commit([key]);
    await endsOnce(watch, key);
  });

  it('keeps a permission that came when it had given up: its next submission starts at once', async () => {
    const { site, watch, key } = await asking(1);
    await watch.until(key, (report) => report.is === 'lost', ground.patience);
    await site.leave?.([key]);
    await site.commit([key]);
    await endsOnce(watch, key);
  });

  it('is withdrawn while it asks, and then a permission is of no use', async () => {
    const { site, key } = await asking(60);
    expect((await site.cancel([key], { onlyIfNotStarted: true })).get(key)).toEqual({ ok: true });
    expect((await site.leave?.([key]))?.get(key)).toMatchObject({ ok: false, refusal: { kind: 'gone' } });
    expect(starts(ground, key)).toBe(0);
    expect((await site.audit()).records).toEqual([]);
  });

  it('and the withdrawal and the permission at once: one of the two wins', async () => {
    for (let turn = 0; turn < 5; turn++) {
      const { site, watch, key } = await asking(60);
      const rival = await ground.open();
      const [left, cancelled] = await Promise.all([
        site.leave?.([key]),
        rival.cancel([key], { onlyIfNotStarted: true }),
      ]);
      if (cancelled.get(key)?.ok) expect(starts(ground, key)).toBe(0);
      else {
        expect(left?.get(key)).toEqual({ ok: true });
        await endsOnce(watch, key);
      }
      await rival.close();
    }
  });
});
