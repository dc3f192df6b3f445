import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { AttemptSpec } from '../../src/site/contract.ts';
import { some } from '../slow.ts';
import type { BatchGround } from './batch-grounds.ts';
import { freshKey, ledgerJob, run, shellJob, starts, Watch } from './kit.ts';

interface Running {
  readonly dir?: string;
  readonly env: Readonly<Record<string, string>>;
  run(command: string, ...args: string[]): string;
}

/** One batch system's terms for the faults that all batch systems can have. */
export interface Trouble {
  readonly submit: string;
  readonly query: string;
  readonly remove: string;
  /** Prints to standard error that the server does not answer; returns the exit status. */
  readonly down: { readonly message: string; readonly status: number; readonly queryStatus?: number };
  /** What the command that removes jobs prints in that case, if different. */
  readonly removeDown?: string;
  /** Arguments of the submit command with which a job waits some seconds, and with which it is held. */
  readonly later?: readonly string[];
  readonly held: readonly string[];
  readonly release?: (batch: Running, id: string) => void;
  /** What it prints for a queue that does not exist; absent if it has no queues. */
  readonly noQueue?: RegExp;
  /** It can end a job at its time limit. */
  readonly clock?: boolean;
  /** Its queue does not show that a job is held. */
  readonly silent?: boolean;
  /** Its host stops ending jobs until the returned function is called; users may have the job forgotten. */
  readonly stuck?: (batch: Running) => () => void;
}

/** The fakes' host does not answer while this file exists. */
export function unreachable({ dir = '' }: Running): () => void {
  const file = join(dir, 'unreachable');
  writeFileSync(file, '');
  return () => rmSync(file);
}

/** Faults between the agent and a batch system, produced by commands placed before its own. */
export function batchFaults<B extends Running>(trouble: Trouble): (ground: () => BatchGround<B>) => void {
  return (ground) => {
    const real = (name: string): string =>
      execFileSync('sh', ['-c', `command -v ${name}`], {
        encoding: 'utf8',
        env: { ...process.env, ...ground().batch.env },
      }).trim();
    /** `$REAL` is the batch system's own command; `once` is true at the first call. */
    const fake = (name: string, script: string): void => {
      const file = join(ground().bin, name);
      writeFileSync(`${file}.once`, '');
      writeFileSync(
        `${file}.new`,
        `#!/bin/sh\nREAL=${real(name)}\nonce() { rm '${file}.once' 2>/dev/null; }\ncase $1 in --version | -help | -V) exec "$REAL" "$@" ;; esac\n${script}\n`,
      );
      chmodSync(`${file}.new`, 0o755);
      execFileSync('mv', [`${file}.new`, file]);
    };
    const unfake = (name: string): void => rmSync(join(ground().bin, name), { force: true });
    const sayingOf = (message: string): string =>
      `printf '%s\\n' '${message.replaceAll("'", "'\\''")}' >&2; exit ${trouble.down.status}`;
    const says = sayingOf(trouble.down.message);
    const extra = (words: readonly string[]): Partial<AttemptSpec> => ({ batch: { extraArgs: words } });

    afterEach(() => {
      unfake(trouble.submit);
      unfake(trouble.query);
      unfake(trouble.remove);
    });

    describe('the answer to a submit is lost', () => {
      it.each(
        some(
          [
            ['it submits, then fails without a word', '"$REAL" "$@" >/dev/null; exit 1'],
            ['it submits, then prints garbage', '"$REAL" "$@" >/dev/null; echo "Welcome to the cluster!"'],
            ['it submits and is killed', '"$REAL" "$@" >/dev/null; kill -9 $$'],
            ['it prints nothing and does nothing', 'once && exit 0; exec "$REAL" "$@"'],
            [
              'the job appears later',
              'once && { exec 3<&0; (sleep 3; "$REAL" "$@" <&3) >/dev/null 2>&1 & exit 1; }; exec "$REAL" "$@"',
            ],
          ],
          2,
        ),
      )(
        '%s',
        async (_, script) => {
          const site = await ground().open();
          const key = freshKey();
          const job = ledgerJob(ground(), key);
          fake(trouble.submit, script);
          await run(site, [job]);
          expect((await new Watch(site).ended(key, 90_000, job)).how).toEqual({ kind: 'exited', code: 0 });
          expect(starts(ground(), key)).toBe(1);
          await site.forget([key]);
        },
        120_000,
      );
    });

    it.each(
      some(
        [
          ['fails', says.replace(/exit \d+$/, `exit ${trouble.down.queryStatus ?? trouble.down.status}`)],
          ['answers nothing', 'exit 0'],
          ['answers garbage', 'echo "<html>502 Bad Gateway</html>"'],
          ['is cut short', '"$REAL" "$@" | head -n 1; kill -9 $$'],
        ],
        2,
      ),
    )(
      'its queue command %s: nothing is lost, nothing is done',
      async (_, script) => {
        const site = await ground().open();
        const key = freshKey();
        const go = join(ground().scratch, `go.${key}`);
        await run(site, [ledgerJob(ground(), key, `while [ ! -e '${go}' ]; do sleep 0.1; done`)]);
        const watch = new Watch(site);
        await watch.until(key, (r) => r.is === 'running' && starts(ground(), key) === 1, 20_000);
        fake(trouble.query, script);
        const second = new Watch(await ground().open());
        const heard: string[] = [];
        const end = Date.now() + 6000;
        while (Date.now() < end) await second.poll(500).catch((error: unknown) => heard.push(String(error)));
        expect(heard[0] ?? '').toContain('does not answer');
        expect(second.history.filter((r) => r.is !== 'running')).toEqual([]);
        unfake(trouble.query);
        writeFileSync(go, '');
        expect((await second.ended(key, 60_000)).how).toEqual({ kind: 'exited', code: 0 });
        expect(starts(ground(), key)).toBe(1);
        await second.site.forget([key]);
      },
      120_000,
    );

    it.skipIf(trouble.noQueue === undefined)('refuses with its own words', async () => {
      const site = await ground().open();
      const key = freshKey();
      await site.prepare([shellJob(key, 'exit 0', { batch: { queue: 'nosuchqueue', extraArgs: [] } })]);
      const outcome = (await site.commit([key])).get(key);
      expect(outcome).toMatchObject({ ok: false, refusal: { kind: 'never', code: 'site-refused' } });
      expect(JSON.stringify(outcome)).toMatch(trouble.noQueue ?? /./);
      await site.forget([key]);
    });

    it('waits while there is no answer, and submits once there is one', async () => {
      const site = await ground().open();
      const key = freshKey();
      const job = ledgerJob(ground(), key);
      fake(trouble.submit, `once && { ${says}; }; exec "$REAL" "$@"`);
      await site.prepare([job]);
      expect((await site.commit([key])).get(key)).toMatchObject({ ok: false, refusal: { kind: 'later' } });
      expect((await site.commit([key])).get(key)).toMatchObject({ ok: true });
      expect((await new Watch(site).ended(key, 60_000, job)).how).toEqual({ kind: 'exited', code: 0 });
      expect(starts(ground(), key)).toBe(1);
      await site.forget([key]);
    }, 90_000);

    it.skipIf(trouble.silent)(
      'says that the site holds a job, and cancels it there',
      async () => {
        const site = await ground().open();
        const watch = new Watch(site);
        const key = freshKey();
        await run(site, [ledgerJob(ground(), key, 'exit 0', extra(trouble.held))]);
        const held = await watch.until(key, (r) => r.is === 'held-by-site', 30_000);
        expect('why' in held ? held.why : '').not.toBe('');
        fake(trouble.remove, sayingOf(trouble.removeDown ?? trouble.down.message));
        expect((await site.cancel([key])).get(key)).toMatchObject({ ok: false, refusal: { kind: 'later' } });
        unfake(trouble.remove);
        expect((await site.cancel([key])).get(key)).toEqual({ ok: true });
        expect(starts(ground(), key)).toBe(0);
        expect(existsSync(join(ground().root, 'jobs', key))).toBe(false);
      },
      90_000,
    );

    it.skipIf(trouble.stuck === undefined)(
      'is asked to forget what its host does not end',
      async () => {
        const site = await ground().open({ killAfter: 300, giveUp: 1000 });
        const key = freshKey();
        const go = join(ground().scratch, `go.${key}`);
        await run(site, [ledgerJob(ground(), key, `trap '' TERM; while [ ! -e '${go}' ]; do sleep 0.1; done`)]);
        await new Watch(site).until(key, (r) => r.is === 'running' && starts(ground(), key) === 1, 30_000);
        const undo = trouble.stuck?.(ground().batch);
        try {
          expect((await site.cancel([key])).get(key)).toMatchObject({ ok: false, refusal: { kind: 'later' } });
          // A different process from the one that was asked first.
          await site.close();
          const next = await ground().open({ killAfter: 300, giveUp: 1000 });
          const since = new Map([[key, Date.now() - 600_000]]);
          const again = async (): Promise<boolean | undefined> => (await next.cancel([key], { since })).get(key)?.ok;
          await expect.poll(again, { timeout: 60_000, interval: 500 }).toBe(true);
          expect(existsSync(join(ground().root, 'jobs', key))).toBe(false);
        } finally {
          undo?.();
          writeFileSync(go, '');
        }
      },
      120_000,
    );

    it('knows that the site removed a job, and ran it out of its time', async () => {
      const site = await ground().open();
      const watch = new Watch(site);
      const [removed, late] = [freshKey(), freshKey()];
      const { cpus, ...none } = { cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined };
      const resources = { cpus, ...none, walltimeSeconds: 4 };
      await run(site, [
        ledgerJob(ground(), removed, 'sleep 600'),
        ...(trouble.clock ? [ledgerJob(ground(), late, 'sleep 600', { resources })] : []),
      ]);
      const running = await watch.until(removed, (r) => r.is === 'running' && starts(ground(), removed) === 1, 30_000);
      ground().batch.run(trouble.remove, 'batchId' in running ? (running.batchId ?? '') : '');
      const { how } = await watch.ended(removed, 100_000);
      expect(how).toMatchObject({ kind: 'by-site', cause: 'cancelled' });
      if (trouble.clock)
        expect((await watch.ended(late, 90_000)).how).toMatchObject({ kind: 'by-site', cause: 'timeout' });
      expect(starts(ground(), removed)).toBe(1);
      await site.forget(trouble.clock ? [removed, late] : [removed]);
    }, 240_000);
  };
}
