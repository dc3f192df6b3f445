import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { SiteBackoff } from '../../src/gridmanager/backoff.ts';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { sshSlurm } from './grounds.ts';
import { SLOW, some } from '../slow.ts';
import { freshKey, freshKeys, ledgerJob, run, shellJob, starts, Watch } from './kit.ts';

type SlurmGround = Awaited<ReturnType<typeof sshSlurm>>;

/** Faults between the agent and a batch system, produced with a real Slurm and with commands placed before its own. */
export function slurmFaults(ground: () => SlurmGround): void {
  /**
   * A command first in PATH: `$REAL` is Slurm's own; the file `once` beside it exists until the first call has taken
   * it.
   */
  const fake = (name: string, script: string): void => {
    const { bin } = ground();
    const real = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    writeFileSync(join(bin, `${name}.once`), '');
    writeFileSync(
      join(bin, name),
      `#!/bin/sh\nREAL=${real}\nonce() { rm '${bin}/${name}.once' 2>/dev/null; }\ncase $* in --version) exec "$REAL" --version ;; esac\n${script}\n`,
    );
    chmodSync(join(bin, name), 0o755);
  };
  const unfake = (name: string): void => rmSync(join(ground().bin, name), { force: true });
  const queued = (key: AttemptKey): string[] =>
    ground()
      .slurm.run('squeue', '-h', '-o', '%k')
      .split('\n')
      .filter((tag) => tag.includes(key));

  afterEach(() => {
    for (const name of ['sbatch', 'squeue', 'scancel', 'sacct']) unfake(name);
  });

  describe('the answer to a submit is lost', () => {
    it.each([
      ['it submits, then fails', '"$REAL" "$@" >/dev/null; once && exit 1; exit 1'],
      ['it submits, then prints garbage', '"$REAL" "$@" >/dev/null; echo "Welcome to the cluster!"'],
      ['it submits and is killed', '"$REAL" "$@" >/dev/null; kill -9 $$'],
      [
        'it submits, and says that it timed out',
        '"$REAL" "$@" >/dev/null; echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1',
      ],
      [
        'it does not submit, and says that it timed out',
        'once && { echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1; }; exec "$REAL" "$@"',
      ],
      ['it prints nothing and does nothing', 'once && exit 0; exec "$REAL" "$@"'],
      ['the job appears later', 'once && { (sleep 4; "$REAL" "$@") >/dev/null 2>&1 & exit 1; }; exec "$REAL" "$@"'],
    ])(
      '%s',
      async (_, script) => {
        const site = await ground().open();
        const key = freshKey();
        const job = ledgerJob(ground(), key);
        fake('sbatch', script);
        await run(site, [job]);
        const watch = new Watch(site);
        expect((await watch.ended(key, 90_000, job)).how).toEqual({ kind: 'exited', code: 0 });
        expect(starts(ground(), key)).toBe(1);
        await site.forget([key]);
      },
      120_000,
    );

    it('an orphan that appears after all is over does not run', async () => {
      const site = await ground().open();
      const key = freshKey();
      const job = ledgerJob(ground(), key);
      fake('sbatch', 'once && { (sleep 25; "$REAL" "$@") >/dev/null 2>&1 & exit 1; }; exec "$REAL" "$@"');
      await run(site, [job]);
      const watch = new Watch(site);
      await watch.ended(key, 60_000, job);
      await expect
        .poll(
          () =>
            ground()
              .slurm.run('squeue', '-h', '-t', 'all', '-o', '%k')
              .split('\n')
              .filter((t) => t.includes(key)).length,
          { timeout: 40_000 },
        )
        .toBe(2);
      await expect.poll(() => queued(key), { timeout: 30_000 }).toEqual([]);
      expect(starts(ground(), key)).toBe(1);
      await site.forget([key]);
    }, 150_000);
  });

  describe('the queue command', () => {
    const faults = [
      ['fails', 'echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1'],
      ['answers nothing', 'exit 0'],
      ['answers garbage', 'echo "<html>502 Bad Gateway</html>"'],
      ['is cut short', '"$REAL" "$@" | head -n 1; kill -9 $$'],
    ] as const;
    it.each(some(faults, 3))(
      '%s: nothing is lost, nothing is done',
      async (_, script) => {
        const site = await ground().open();
        const key = freshKey();
        await run(site, [ledgerJob(ground(), key, 'sleep 3', { batch: { extraArgs: ['--begin=now+20'] } })]);
        const watch = new Watch(site);
        await watch.until(key, (r) => r.is === 'queued', 10_000);
        fake('squeue', script);
        const fresh = await ground().open();
        const second = new Watch(fresh);
        const heard: string[] = [];
        const end = Date.now() + 17_000;
        while (Date.now() < end) await second.poll(500).catch((error: unknown) => heard.push(String(error)));
        expect(heard.length).toBeGreaterThan(0);
        expect(heard[0]).toContain('does not answer');
        expect([...second.history, ...watch.history].filter((r) => r.key === key && r.is !== 'queued')).toEqual([]);
        unfake('squeue');
        expect((await second.ended(key, 60_000)).how).toEqual({ kind: 'exited', code: 0 });
        expect(starts(ground(), key)).toBe(1);
        await fresh.forget([key]);
      },
      120_000,
    );

    it('hangs: it is ended, and said so', async () => {
      const site = await ground().open();
      fake('squeue', 'sleep 300');
      await expect(
        site
          .poll({ cursor: undefined, follow: [] })
          .then(() => site.poll({ cursor: undefined, follow: [] }))
          .then((a) => site.poll({ cursor: a.cursor, follow: [] })),
      ).rejects.toThrow('did not answer in time');
    }, 150_000);
  });

  it('refuses with its own words', async () => {
    const site = await ground().open();
    const [queue, time] = [freshKey(), freshKey()];
    await site.prepare([
      shellJob(queue, 'exit 0', { batch: { queue: 'no-such-queue', extraArgs: [] } }),
      shellJob(time, 'exit 0', { batch: { queue: 'short', extraArgs: ['--time=600'] } }),
    ]);
    const outcomes = await site.commit([queue, time]);
    expect(outcomes.get(queue)).toMatchObject({ ok: false, refusal: { kind: 'never', code: 'site-refused' } });
    expect(JSON.stringify(outcomes.get(queue))).toMatch(/partition.*Queues there: main short/);
    expect(outcomes.get(time)).toMatchObject({ ok: false, refusal: { kind: 'never' } });
    await site.forget([queue, time]);
  });

  it('waits where the controller cannot be reached, and submits once it can', async () => {
    const site = await ground().open();
    const key = freshKey();
    const job = ledgerJob(ground(), key);
    fake(
      'sbatch',
      'once && { echo "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)" >&2; exit 1; }; exec "$REAL" "$@"',
    );
    await site.prepare([job]);
    expect((await site.commit([key])).get(key)).toMatchObject({
      ok: false,
      refusal: { kind: 'later', code: 'site-busy' },
    });
    expect((await site.commit([key])).get(key)).toMatchObject({ ok: true });
    expect((await new Watch(site).ended(key, 60_000, job)).how).toEqual({ kind: 'exited', code: 0 });
    expect(starts(ground(), key)).toBe(1);
    await site.forget([key]);
  }, 90_000);

  it('follows a job that the site puts back into its queue, where its former run is known to be over', async () => {
    const site = await ground().open();
    const watch = new Watch(site);
    const [killed, doubtful] = [freshKey(), freshKey()];
    const ids = new Map<AttemptKey, string>();
    for (const key of [killed, doubtful]) {
      await run(site, [ledgerJob(ground(), key, `[ -e ${ground().bin}/again ] || sleep 600`)]);
      const running = await watch.until(key, (r) => r.is === 'running' && starts(ground(), key) === 1, 30_000);
      ids.set(key, 'batchId' in running ? (running.batchId ?? '') : '');
    }
    writeFileSync(join(ground().bin, 'again'), '');
    // As if it had run on a machine that has stopped reporting.
    const owner = join(ground().root, 'jobs', doubtful, 'run.lock.1/owner');
    writeFileSync(owner, readFileSync(owner, 'utf8').replace(/host=\S+/, 'host=elsewhere'));
    for (const [key, id] of ids) {
      ground().slurm.scontrol('requeue', id);
      await watch.until(key, (r) => r.is === 'queued', 30_000);
      await expect.poll(() => ground().slurm.run('squeue', '-h', '-j', id, '-o', '%T').trim()).toBe('PENDING');
      rmSync(join(ground().root, 'jobs', doubtful, 'exit'), { force: true });
      // Within the second in which Slurm revoked the former run's credential, it cannot start.
      await delay(2000);
      ground().slurm.scontrol('update', `JobId=${id}`, 'StartTime=now');
    }
    expect((await watch.ended(killed, 60_000)).how).toEqual({ kind: 'exited', code: 0 });
    expect((await watch.ended(doubtful, 60_000)).how).toMatchObject({ kind: 'by-site', cause: 'requeued' });
    expect([killed, doubtful].map((key) => starts(ground(), key))).toEqual([2, 1]);
    rmSync(join(ground().bin, 'again'));
    await site.forget([killed, doubtful]);
  }, 180_000);

  it.skipIf(!SLOW)(
    'gives up what it can never start, and takes it out of the queue',
    async () => {
      const site = await ground().open();
      const watch = new Watch(site);
      const key = freshKey();
      const failed = ground().slurm.run('sbatch', '--parsable', '--output=/dev/null', '--wrap', 'exit 3').trim();
      await run(site, [
        ledgerJob(ground(), key, 'exit 0', { batch: { extraArgs: [`--dependency=afterok:${failed}`] } }),
      ]);
      const held = await watch.until(key, (r) => r.is === 'held-by-site', 60_000);
      expect(held).toMatchObject({ why: 'DependencyNeverSatisfied' });
      const { how } = await watch.ended(key, 120_000);
      expect(how).toEqual({ kind: 'by-site', cause: 'unsatisfiable', message: 'DependencyNeverSatisfied' });
      await expect.poll(() => queued(key), { timeout: 20_000 }).toEqual([]);
      expect(starts(ground(), key)).toBe(0);
      await site.forget([key]);
    },
    240_000,
  );

  it('is taken out of use when its nodes die one after another, until a job ends there by itself', async () => {
    const site = await ground().open();
    const watch = new Watch(site);
    const backoff = new SiteBackoff(undefined, Date.now(), async () => undefined);
    for (const node of ['n1', 'n2']) {
      const keys = freshKeys(3);
      await run(
        site,
        keys.map((key) => shellJob(key, 'sleep 600', { batch: { extraArgs: [`--nodelist=${node}`, '--no-requeue'] } })),
      );
      for (const key of keys) await watch.until(key, (r) => r.is === 'running' && r.since !== undefined, 30_000);
      expect(backoff.view.outOfUse).toBeUndefined();
      ground().slurm.scontrol('update', `nodename=${node}`, 'state=down', 'reason=test');
      const ends = [];
      for (const key of keys) ends.push(await watch.ended(key, 60_000));
      await backoff.heard(ends, Date.now());
      await site.forget(keys);
    }
    expect(backoff.view.outOfUse?.message).toContain('node');
    expect([0, 61_000].map((later) => backoff.available(0, Date.now() + later))).toEqual([0, 1]);
    const probe = freshKey();
    await run(site, [shellJob(probe, 'exit 0')]);
    await backoff.heard([await watch.ended(probe, 60_000)], Date.now());
    expect(backoff.view.outOfUse).toBeUndefined();
    await site.forget([probe]);
  }, 180_000);

  it('knows who ended a job', async () => {
    const site = await ground().open();
    const watch = new Watch(site);
    const [cancelled, late, failed] = [freshKey(), freshKey(), freshKey()];
    const on = (node: string) => ({ batch: { extraArgs: [`--nodelist=${node}`, '--no-requeue'] } });
    await run(site, [
      shellJob(cancelled, 'sleep 600'),
      shellJob(late, 'sleep 600', on('n1')),
      shellJob(failed, 'sleep 600', on('n2')),
    ]);
    const ids = new Map<AttemptKey, string>();
    for (const key of [cancelled, late, failed]) {
      const report = await watch.until(
        key,
        (r) => r.is === 'running' && r.since !== undefined && r.batchId !== undefined,
        30_000,
      );
      ids.set(key, 'batchId' in report ? (report.batchId ?? '') : '');
    }
    ground().slurm.run('scancel', ids.get(cancelled) ?? '');
    ground().slurm.scontrol('update', `JobId=${ids.get(late) ?? ''}`, 'EndTime=now+1');
    ground().slurm.scontrol('update', 'nodename=n2', 'state=down', 'reason=test');
    expect((await watch.ended(cancelled, 60_000)).how).toMatchObject({ kind: 'by-site', cause: 'cancelled' });
    expect((await watch.ended(failed, 60_000)).how).toMatchObject({ kind: 'by-site', cause: 'node-fail' });
    expect((await watch.ended(late, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'timeout' });
    await site.forget([cancelled, late, failed]);
  }, 180_000);

  it('runs once what a killed controller forgot after it had acknowledged', async () => {
    const site = await ground().open();
    const watch = new Watch(site);
    const keys = [freshKey(0), freshKey(1), freshKey(2), freshKey(3)];
    // Not startable yet, so that it exists only in the controller's memory.
    const jobs = keys.map((key) => ledgerJob(ground(), key, 'exit 0', { batch: { extraArgs: ['--begin=now+3'] } }));
    await site.prepare(jobs);
    await site.commit(keys);
    ground().slurm.killCtld();
    await ground().slurm.restartCtld();
    for (const [i, key] of keys.entries()) {
      expect((await watch.ended(key, 120_000, jobs[i])).how).toEqual({ kind: 'exited', code: 0 });
    }
    expect(keys.map((key) => starts(ground(), key))).toEqual([1, 1, 1, 1]);
    expect(existsSync(join(ground().root, 'jobs', keys[0] ?? ''))).toBe(true);
    await site.forget(keys);
  }, 180_000);
}
