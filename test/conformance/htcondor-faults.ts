import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptSpec } from '../../src/site/contract.ts';
import type { Condor } from '../sites/condor.ts';
import { SLOW } from '../slow.ts';
import type { BatchGround } from './batch-grounds.ts';
import { freshKey, freshKeys, ledgerJob, run, starts, Watch } from './kit.ts';

/** What a pool, or its administrator, does to jobs; produced with HTCondor's own means. */
export function htcondorFaults(ground: () => BatchGround<Condor>): void {
  const resources = { cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined };
  const condor = (): Condor => ground().batch;
  const queue = (): string => condor().run('condor_q', '-af', 'GryphusKey', 'JobStatus');
  /** Runs until a file exists. */
  const waiting = (key: AttemptKey, more: Partial<AttemptSpec> = {}): AttemptSpec =>
    ledgerJob(ground(), key, `while [ ! -e '${goFile(key)}' ]; do sleep 0.1; done`, more);
  const goFile = (key: AttemptKey): string => join(ground().scratch, `go.${key}`);
  const running = async (watch: Watch, key: AttemptKey): Promise<string> => {
    const passes = (r: { is: string }): boolean => r.is === 'running' && starts(ground(), key) === 1;
    const report = await watch.until(key, (r) => passes(r) && 'batchId' in r && r.batchId !== undefined, 30_000);
    return ('batchId' in report && report.batchId) || '';
  };
  /** Settings that apply until the test ends. */
  const configured = async (settings: Readonly<Record<string, number>>): Promise<void> => {
    condor().configure(...Object.entries(settings).map(([name, value]) => `${name} = ${value}`));
    for (const [name, value] of Object.entries(settings)) {
      const present = (): number => Number(condor().run('condor_config_val', '-schedd', name));
      await expect.poll(present, { timeout: 20_000 }).toBe(value);
    }
  };
  afterEach(() => condor().configure());
  const killed = (...names: string[]): void => {
    const pids = names.flatMap((name) => condor().daemons(name));
    expect(pids).not.toEqual([]);
    for (const pid of pids) process.kill(pid, 'SIGKILL');
  };

  describe('what was running', () => {
    const LONG_AFTER = 20_000;
    it.each([
      ['is held', (id: string) => void condor().admin('condor_hold', id), 'condor_hold'],
      ['is vacated', (id: string) => void condor().admin('condor_vacate_job', '-fast', id), 'evicted'],
      ['loses its shadow', () => killed('shadow'), ''],
    ])('%s: it has ended, and leaves the queue', async (_, does, message) => {
      const site = await ground().open();
      const watch = new Watch(site);
      const key = freshKey();
      await run(site, [waiting(key)]);
      does(await running(watch, key));
      const { how } = await watch.ended(key, LONG_AFTER);
      expect(how).toMatchObject({ kind: 'by-site', cause: expect.stringMatching(/^(preempted|requeued)$/) });
      expect('message' in how ? how.message : '').toContain(message);
      await expect.poll(queue, { timeout: LONG_AFTER }).toBe('');
      expect(starts(ground(), key)).toBe(1);
      await site.forget([key]);
    });
  });

  it('a host that keeps to memory stops what takes more than it asked for', async () => {
    const site = await ground().open();
    const watch = new Watch(site);
    const key = freshKey();
    const greedy = `perl -e '$x = "x" x 300_000_000; sleep 60'`;
    await run(site, [ledgerJob(ground(), key, greedy, { resources: { ...resources, memoryMb: 60 } })]);
    const { how } = await watch.ended(key, 60_000);
    expect(how).toMatchObject({ kind: 'by-site', cause: 'out-of-memory' });
    await expect.poll(queue, { timeout: 20_000 }).toBe('');
    await site.forget([key]);
  });

  it('a limit of its queue lets in as many as it takes, and the others later', async () => {
    await configured({ MAX_JOBS_PER_OWNER: 2, MAX_JOBS_PER_SUBMISSION: 3 });
    const site = await ground().open();
    const watch = new Watch(site);
    const keys = freshKeys(5);
    await site.prepare(keys.map((key) => waiting(key)));
    const first = await site.commit(keys);
    const taken = keys.filter((key) => first.get(key)?.ok);
    // For a moment it still counts what it has just refused.
    expect([1, 2]).toContain(taken.length);
    for (const key of keys.filter((one) => !taken.includes(one)))
      expect(first.get(key)).toMatchObject({ ok: false, refusal: { kind: 'later', code: 'site-full' } });
    for (const key of keys) writeFileSync(goFile(key), '');
    for (let left = keys; left.length > 0; ) {
      const outcomes = await site.commit(left);
      left = left.filter((key) => outcomes.get(key)?.ok !== true);
      if (left.length > 0) await watch.poll(1000);
    }
    for (const key of keys) expect((await watch.ended(key, 60_000)).how).toEqual({ kind: 'exited', code: 0 });
    expect(keys.map((key) => starts(ground(), key))).toEqual([1, 1, 1, 1, 1]);
    await site.forget(keys);
  });

  it('what no host has is waited for, and the reason is said', async () => {
    const site = await ground().open();
    const watch = new Watch(site);
    const key = freshKey();
    await run(site, [ledgerJob(ground(), key, 'exit 0', { resources: { ...resources, cpus: 1000 } })]);
    const report = await watch.until(
      key,
      (r) => r.is === 'queued' && r.why?.includes('no match found') === true,
      30_000,
    );
    expect('why' in report ? report.why : '').toContain('condor_q -better-analyze');
    expect((await site.cancel([key])).get(key)).toEqual({ ok: true });
  });

  it.skipIf(!SLOW)('nothing is cancelled where the schedd is gone, and everything once it is back', async () => {
    const site = await ground().open();
    const key = freshKey();
    await run(site, [ledgerJob(ground(), key, 'exit 0', { batch: { extraArgs: ['-append', 'hold = True'] } })]);
    killed('schedd');
    expect((await site.cancel([key])).get(key)).toMatchObject({ ok: false, refusal: { kind: 'later' } });
    expect(existsSync(join(ground().root, 'jobs', key))).toBe(true);
    const cancelled = async (): Promise<boolean | undefined> => (await site.cancel([key])).get(key)?.ok;
    await expect.poll(cancelled, { timeout: 60_000, interval: 500 }).toBe(true);
    expect(queue()).toBe('');
    expect(starts(ground(), key)).toBe(0);
  });

  it.skipIf(!SLOW)('what ended long ago is found in a history that was rotated since', async () => {
    const site = await ground().open();
    const keys = [freshKey(), freshKey()] as const;
    await run(
      site,
      keys.map((key) => waiting(key)),
    );
    const watch = new Watch(site);
    const ids = [await running(watch, keys[0]), await running(watch, keys[1])];
    await site.close();
    condor().admin('condor_rm', ...ids);
    await expect.poll(queue, { timeout: 20_000 }).toBe('');
    // More than one file of its history holds; if it is rotated twice in one second, HTCondor loses the first.
    const others = join(ground().scratch, 'others');
    writeFileSync(others, 'executable = /bin/true\nhold = True\nqueue 4\n');
    const rotations = (): number =>
      readdirSync(join(condor().dir, 'spool')).filter((n) => n.startsWith('history.')).length;
    for (const before = rotations(); rotations() === before; ) {
      condor().run('condor_submit', others);
      condor().run('condor_rm', '-all');
      await expect.poll(queue, { timeout: 20_000 }).toBe('');
    }
    const later = new Watch(await ground().open());
    for (const key of keys)
      expect((await later.ended(key, 60_000)).how).toMatchObject({ kind: 'by-site', cause: 'cancelled' });
    await later.site.forget(keys);
  });

  describe.runIf(SLOW)('its daemons die while a job runs', () => {
    it.each(['schedd', 'collector', 'negotiator'])('%s: it continues, and ends once', async (name) => {
      const site = await ground().open();
      const watch = new Watch(site);
      const key = freshKey();
      await run(site, [waiting(key)]);
      await running(watch, key);
      killed(name);
      await expect.poll(() => condor().answers(), { timeout: 60_000 }).toBe(true);
      writeFileSync(goFile(key), '');
      expect((await watch.ended(key, 60_000)).how).toEqual({ kind: 'exited', code: 0 });
      expect(starts(ground(), key)).toBe(1);
      await site.forget([key]);
    });
    it('schedd, which hangs: nothing is said of it until it answers', async () => {
      const site = await ground().open();
      const key = freshKey();
      await run(site, [waiting(key)]);
      await running(new Watch(site), key);
      const signal = (name: NodeJS.Signals): void =>
        condor()
          .daemons('schedd')
          .forEach((pid) => process.kill(pid, name));
      signal('SIGSTOP');
      try {
        const later = new Watch(await ground().open());
        const asked = async (): Promise<string> => later.poll().then(() => '', String);
        await expect.poll(asked, { timeout: 60_000 }).toContain('does not answer');
        expect(later.history.filter((report) => report.is !== 'running')).toEqual([]);
      } finally {
        signal('SIGCONT');
      }
      writeFileSync(goFile(key), '');
      expect((await new Watch(site).ended(key, 60_000)).how).toEqual({ kind: 'exited', code: 0 });
      expect(starts(ground(), key)).toBe(1);
      await site.forget([key]);
    });
    it('startd: it has ended once the lease is over', async () => {
      const site = await ground().open();
      const watch = new Watch(site);
      const key = freshKey();
      await run(site, [waiting(key, { batch: { extraArgs: ['-append', 'job_lease_duration = 20'] } })]);
      await running(watch, key);
      killed('startd', 'starter');
      expect((await watch.ended(key, 90_000)).how).toMatchObject({
        kind: 'by-site',
        cause: expect.stringMatching(/^(preempted|requeued)$/),
      });
      expect(starts(ground(), key)).toBe(1);
      writeFileSync(goFile(key), '');
      await site.forget([key]);
    });
  });
}
