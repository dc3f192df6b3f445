import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { AttemptSpec } from '../../src/site/contract.ts';
import { some } from '../slow.ts';
import { freshKeys, type Ground, ledgerJob, run, starts, Watch } from './kit.ts';

export interface ArrayGround extends Ground {
  /** First in PATH at the site. */
  readonly bin: string;
}

/** One batch system's terms for what its arrays can do. */
export interface ArrayWords<G> {
  readonly submit: string;
  /** Distinguishes a submit of an array from others: a `case` pattern for all its arguments, separated by blanks. */
  readonly isArray: string;
  /** What it prints to standard error, and its status, if arrays are not allowed. */
  readonly refuses: { readonly message: string; readonly status: number };
  readonly env: (ground: G) => Readonly<Record<string, string>>;
  /** Its own command removes one element. */
  readonly remove: (ground: G, batchId: string) => void;
}

/** Similar jobs of one cluster are one array in the batch system, yet each behaves as a job of its own. */
export function arrayTests<G extends ArrayGround>(words: ArrayWords<G>): (ground: () => G) => void {
  return (ground) => {
    const commands = (): readonly string[] =>
      existsSync(logFile()) ? readFileSync(logFile(), 'utf8').split('\n').filter(Boolean) : [];
    const logFile = (): string => join(ground().scratch, 'submits');
    /**
     * Before the batch system's own submit command ($REAL): records whether an array was submitted, then runs `script`.
     */
    const fake = (script: string): void => {
      const file = join(ground().bin, words.submit);
      rmSync(file, { force: true });
      const real = execFileSync('sh', ['-c', `command -v ${words.submit}`], {
        encoding: 'utf8',
        env: { ...process.env, ...words.env(ground()) },
      }).trim();
      writeFileSync(`${file}.once`, '');
      const says = `printf '%s\\n' '${words.refuses.message.replaceAll("'", "'\\''")}' >&2; exit ${words.refuses.status}`;
      writeFileSync(
        `${file}.new`,
        `#!/bin/sh
REAL=${real}
once() { rm '${file}.once' 2>/dev/null; }
refuse() { ${says}; }
case $1 in --version | -V) exec "$REAL" "$@" ;; esac
ARRAY=
for last; do :; done
[ ! -f "$last" ] || TEXT=$(cat "$last")
case " $* $TEXT " in ${words.isArray}) ARRAY=1 ;; esac
echo "\${ARRAY:-0}" >>'${logFile()}'
${script}
`,
      );
      chmodSync(`${file}.new`, 0o755);
      execFileSync('mv', [`${file}.new`, file]);
    };
    const goFile = (keys: readonly AttemptKey[]): string => join(ground().scratch, `go.${keys[0]}`);
    /** Jobs that wait for a file and exit with their number. */
    const waiting = (keys: readonly AttemptKey[]): AttemptSpec[] =>
      keys.map((key, i) => ledgerJob(ground(), key, `while [ ! -e '${goFile(keys)}' ]; do sleep 0.1; done; exit ${i}`));
    const running = async (watch: Watch, keys: readonly AttemptKey[]): Promise<string[]> => {
      const ids: string[] = [];
      for (const key of keys) {
        const report = await watch.until(
          key,
          (r) => r.is === 'running' && r.batchId !== undefined && starts(ground(), key) === 1,
          60_000,
        );
        ids.push(('batchId' in report && report.batchId) || '');
      }
      return ids;
    };

    describe('alike jobs of one cluster', () => {
      beforeEach(() => {
        rmSync(logFile(), { force: true });
        fake('exec "$REAL" "$@"');
      });
      afterEach(() => rmSync(join(ground().bin, words.submit), { force: true }));

      it('are one array; each has its id, its end, its cancel and its next attempt', async () => {
        const site = await ground().open();
        const watch = new Watch(site);
        const keys = freshKeys(6);
        const [other] = freshKeys(1);
        if (other === undefined) throw new Error('no key');
        const jobs = [...waiting(keys), ledgerJob(ground(), other, 'exit 7')];
        await run(site, jobs);
        expect(commands().toSorted()).toEqual(['0', '1']);
        const [, removed = ''] = await running(watch, keys);
        const ids = new Set(keys.map((key) => idOf(watch, key)));
        expect(ids.size).toBe(keys.length);
        // One is cancelled, one is removed by the site; the others continue.
        const [, second, third] = keys as readonly [AttemptKey, AttemptKey, AttemptKey];
        expect((await site.cancel([third])).get(third)).toEqual({ ok: true });
        words.remove(ground(), removed);
        expect((await watch.ended(second, 100_000)).how).toMatchObject({ kind: 'by-site', cause: 'cancelled' });
        // The next attempt is an ordinary job.
        const again = third.replace(/1$/, '2') as AttemptKey;
        await run(site, [ledgerJob(ground(), again, 'exit 9')]);
        expect((await watch.ended(again, 60_000)).how).toEqual({ kind: 'exited', code: 9 });
        writeFileSync(goFile(keys), '');
        for (const [i, key] of keys.entries()) {
          if (key === second || key === third) continue;
          expect([key, (await watch.ended(key, 60_000)).how]).toEqual([key, { kind: 'exited', code: i }]);
        }
        expect((await watch.ended(other, 60_000)).how).toEqual({ kind: 'exited', code: 7 });
        expect([...keys, other, again].map((key) => starts(ground(), key))).toEqual(Array.from({ length: 8 }, () => 1));
        await site.forget([...keys.filter((key) => key !== third), other, again]);
        expect(readdirSync(join(ground().root, 'jobs'))).toEqual([]);
      }, 240_000);

      it('are not missing while the queue has them, though their directories are lost, and can be removed', async () => {
        const site = await ground().open();
        const keys = freshKeys(3);
        await run(site, waiting(keys));
        const ids = await running(new Watch(site), keys);
        await site.close();
        // As a cleaner of the scratch file system does.
        for (const name of ['jobs', 'groups']) rmSync(join(ground().root, name), { recursive: true });
        const promised = new Map(keys.map((key, i) => [key, ids[i]]));
        const anew = await ground().open({ killAfter: 1000 });
        const { reports, complete } = await anew.poll({ cursor: undefined, follow: [], promised });
        expect(complete).toBe(true);
        const found = reports.filter(({ key }) => promised.has(key));
        expect(found.map((report) => [report.key, report.is, 'batchId' in report && report.batchId])).toEqual(
          keys.map((key, i) => [key, 'unclear', ids[i]]),
        );
        const [first, ...others] = keys as readonly [AttemptKey, ...AttemptKey[]];
        expect((await anew.cancel([first])).get(first)).toEqual({ ok: true });
        const left = async (): Promise<string[]> =>
          (await anew.audit()).queued.flatMap((job) => (!job.over && ids.includes(job.batchId) ? [job.tag] : []));
        expect(await left()).toHaveLength(others.length);
        await anew.prune?.(await left());
        await expect.poll(left, { timeout: 60_000, interval: 500 }).toEqual([]);
        expect(keys.map((key) => starts(ground(), key))).toEqual([1, 1, 1]);
      }, 240_000);

      const LOST: readonly (readonly [string, string])[] = [
        ['is submitted, then fails without a word', '"$REAL" "$@" >/dev/null; exit 1'],
        ['is submitted, then prints garbage', '"$REAL" "$@" >/dev/null; echo "Welcome to the cluster!"'],
        [
          'appears later',
          'once && { exec 3<&0; (sleep 3; "$REAL" "$@" <&3) >/dev/null 2>&1 & exit 1; }; exec "$REAL" "$@"',
        ],
        ['is not submitted, and nothing is said', 'once && exit 0; exec "$REAL" "$@"'],
      ];
      it.each(some(LOST, 2))(
        'run once where the answer is lost: it %s',
        async (_, script) => {
          const site = await ground().open();
          const watch = new Watch(site);
          const keys = freshKeys(3);
          const jobs = keys.map((key, i) => ledgerJob(ground(), key, `exit ${i}`));
          fake(script);
          await run(site, jobs);
          expect(commands()[0]).toBe('1');
          for (const [i, key] of keys.entries())
            expect((await watch.ended(key, 90_000, jobs[i])).how).toEqual({ kind: 'exited', code: i });
          expect(keys.map((key) => starts(ground(), key))).toEqual([1, 1, 1]);
          await site.forget(keys);
        },
        150_000,
      );

      it.each(some(['jm.submit-after', 'jm.commit-intended', 'jm.submit-saved', 'jm.submit-before'], 2))(
        'run once where the JobManager dies at %s',
        async (point) => {
          const keys = freshKeys(3);
          const jobs = keys.map((key, i) => ledgerJob(ground(), key, `exit ${i}`));
          const first = await ground().open();
          await first.prepare(jobs);
          await first.close();
          writeFileSync(join(ground().root, 'crash-point'), point);
          const site = await ground().open();
          for (let turn = 1; ; turn++) {
            const outcomes = await site.commit(keys).catch((error: unknown) => {
              if (turn > 20) throw error;
            });
            if (outcomes && [...outcomes.values()].every(({ ok }) => ok)) break;
          }
          expect(existsSync(join(ground().root, 'crash-point'))).toBe(false);
          const watch = new Watch(site);
          for (const [i, key] of keys.entries())
            expect((await watch.ended(key, 90_000, jobs[i])).how).toEqual({ kind: 'exited', code: i });
          expect(keys.map((key) => starts(ground(), key))).toEqual([1, 1, 1]);
          await site.forget(keys);
        },
        150_000,
      );

      it('go one by one where the site wants no arrays', async () => {
        const site = await ground().open();
        const watch = new Watch(site);
        const keys = freshKeys(4);
        fake('[ -z "$ARRAY" ] || refuse; exec "$REAL" "$@"');
        await run(
          site,
          keys.map((key, i) => ledgerJob(ground(), key, `exit ${i}`)),
        );
        expect(commands()).toEqual(['1', '0', '0', '0', '0']);
        for (const [i, key] of keys.entries())
          expect((await watch.ended(key, 60_000)).how).toEqual({ kind: 'exited', code: i });
        await site.forget(keys);
      }, 90_000);

      it('are all refused in the words that one of them by itself is', async () => {
        const site = await ground().open();
        const keys = freshKeys(5);
        fake('[ -n "$ARRAY" ] || echo by itself >&2; refuse');
        await site.prepare(keys.map((key) => ledgerJob(ground(), key)));
        const outcomes = await site.commit(keys);
        for (const key of keys)
          expect(outcomes.get(key)).toMatchObject({
            ok: false,
            refusal: { kind: 'never', message: expect.stringContaining('by itself') },
          });
        expect(commands()).toEqual(['1', '0']);
        await site.forget(keys);
      });
    });
  };
}

function idOf(watch: Watch, key: AttemptKey): string | undefined {
  const report = watch.reports.get(key);
  return report !== undefined && 'batchId' in report ? report.batchId : undefined;
}
