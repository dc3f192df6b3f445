import { mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AuditableSite } from '../../src/site/audit.ts';
import { crashTests } from './crashes.ts';
import { SLOW } from '../slow.ts';
import { blob, freshKey, type Ground, ledgerJob, run, shellJob, spec, starts, texts, Watch } from './kit.ts';
import { NASTY } from './nasty.ts';

export interface SiteUnderTest<G extends Ground> {
  readonly name: string;
  readonly makeSite: () => Promise<G>;
  /** The backend sends TERM to a job's processes and takes the batch system's verdict into account. */
  readonly skip?: boolean;
  /** Tests, by name, of what only our own JobManager does. */
  readonly except?: readonly string[];
  /** The only tests, by name, of an ordinary run: another site covers the rest. */
  readonly ordinary?: readonly string[];
  /** What only this batch system can be asked for. */
  readonly more?: (ground: () => G) => void;
}

/** What depends on how a batch system's commands are called and on what they answer; the rest is the JobManager's, which other sites cover. */
export const OF_ITS_COMMANDS: readonly string[] = [
  'says what it is, and that it is well',
  'runs a job from its files to its results, once',
  'hands over arguments, variables and names with every legal byte',
  'hands over variables of every name and value',
  'tells exit codes from signals',
  'withdraws what has not started, and kills what has',
];

/** Checks that a site keeps the contract of src/site/contract.ts, which applies to every site. */
export function testSite<G extends Ground>(tested: SiteUnderTest<G>): void {
  const { name, makeSite, skip = false, except, ordinary, more } = tested;
  const whole = SLOW || ordinary === undefined;
  describe.skipIf(skip)(name, () => {
    const leftOut = (message: string) => except?.includes(message) || !(whole || ordinary.includes(message));
    const test = (message: string, body: () => Promise<void>) => it.skipIf(leftOut(message))(message, body);
    let ground: G;
    let site: AuditableSite;
    let watch: Watch;
    beforeAll(async () => {
      ground = await makeSite();
    });
    afterAll(async () => await ground?.close());
    beforeEach(async () => {
      site = await ground.open();
      watch = new Watch(site);
    });
    afterEach(async () => {
      const left = (await site.audit()).records.map((record) => record.key);
      if (left.length > 0) await (await ground.open({ killAfter: 200 })).cancel(left);
      await ground.closeSites();
    });

    test('says what it is, and that it is well', async () => {
      const facts = await site.describe();
      expect(facts.home).toBe(ground.root);
      expect(facts.batchVersion).toBeTruthy();
      expect((await site.test()).filter((step) => !step.ok)).toEqual([]);
    });

    test('runs a job from its files to its results, once', async () => {
      const key = freshKey();
      const program = blob(
        ground.scratch,
        'program',
        `#!/bin/sh\ncat; cat 'in put'; echo "$1" >out; echo bad >&2; mkdir d; echo x >d/deep; echo l >>'${ground.scratch}/ledger.${key}'; exit 3\n`,
      );
      const job = spec(key, {
        executable: { kind: 'blob', blob: program },
        args: ['one two'],
        stdin: { kind: 'blob', blob: blob(ground.scratch, 'stdin', 'from stdin\n') },
        inputs: [
          {
            kind: 'file',
            name: 'in put',
            file: { kind: 'blob', blob: blob(ground.scratch, 'data', 'from data\n') },
            executable: false,
          },
          { kind: 'directory', name: 'empty' },
        ],
      });
      expect([...(await site.prepare([job]))]).toEqual([[key, { ok: true }]]);
      expect([...(await site.prepare([job]))]).toEqual([[key, { ok: true }]]);
      const [, committed] = [...(await site.commit([key]))][0] ?? [];
      expect(committed).toMatchObject({ ok: true });
      expect([...(await site.commit([key]))]).toEqual([[key, committed]]);
      const ended = await watch.ended(key, ground.patience);
      expect(ended).toMatchObject({ how: { kind: 'exited', code: 3 }, stdoutBytes: 21, stderrBytes: 4 });
      expect(Math.abs((ended.endedAt ?? 0) - Date.now() / 1000)).toBeLessThan(60);
      const request = { key, stdout: true, stderr: true, into: join(ground.scratch, 'home', key) };
      const fetched = (await site.fetch([{ ...request, outputs: 'new' }])).get(key);
      expect(texts(fetched)).toEqual({ out: 'one two\n', stdout: 'from stdin\nfrom data\n', stderr: 'bad\n' });
      const named = (await site.fetch([{ ...request, outputs: ['d', 'out', 'no such'] }])).get(key);
      expect(named).toMatchObject({ ok: false, refusal: { code: 'output-missing' }, missing: ['no such'] });
      expect(Object.keys(texts(named)).sort()).toEqual(['d/deep', 'out', 'stderr', 'stdout']);
      expect([...(await site.forget([key]))]).toEqual([[key, { ok: true }]]);
      expect([...(await site.forget([key]))]).toEqual([[key, { ok: true }]]);
      expect(starts(ground, key)).toBe(1);
      expect((await site.audit()).records).toEqual([]);
    });

    test('names what among its outputs has no content, and brings the others', async () => {
      const key = freshKey();
      const script =
        'mkdir d "a b"; echo x >d/x; mkfifo d/pipe "a b/p%"; mkdir e; echo y >e/y; ln -s ../e e/round; echo z >z';
      await run(site, [shellJob(key, script)]);
      await watch.ended(key, ground.patience);
      const request = { key, stdout: false, stderr: false, into: join(ground.scratch, 'home', key) };
      const fetched = (await site.fetch([{ ...request, outputs: ['d', 'a b/p%', 'e', 'z'] }])).get(key);
      expect(fetched).toMatchObject({
        ok: false,
        missing: [],
        odd: [
          { name: 'd/pipe', is: 'pipe' },
          { name: 'a b/p%', is: 'pipe' },
          { name: 'e/round', is: 'loop' },
        ],
      });
      expect(texts(fetched)).toMatchObject({ z: 'z\n' });
      await site.forget([key]);
    });

    test('hands over arguments, variables and names with every legal byte', async () => {
      const key = freshKey();
      const files = NASTY.filter(
        (text) => text !== '' && !text.includes('/') && text !== '.' && Buffer.byteLength(text) < 250,
      );
      const inputs = files.map((file, i) => ({
        kind: 'file' as const,
        name: file,
        file: { kind: 'blob' as const, blob: blob(ground.scratch, `nasty${i}`, `content ${i}`) },
        executable: false,
      }));
      const script =
        'for a do printf "%s\\0" "$a"; done >args; for f in * .[!.]* ..?*; do case $f in args) ;; *) [ -f "$f" ] && printf "%s" x >"new $f";; esac; done; exit 0';
      await run(site, [spec(key, { args: ['-c', script, 'sh', ...NASTY], inputs })]);
      expect(await watch.ended(key, ground.patience)).toMatchObject({ how: { kind: 'exited', code: 0 } });
      const outcome = (
        await site.fetch([
          { key, outputs: 'new', stdout: false, stderr: true, into: join(ground.scratch, 'home', key) },
        ])
      ).get(key);
      const came = texts(outcome);
      expect(came['stderr']).toBe('');
      expect(came['args']?.split('\0').slice(0, -1)).toEqual(NASTY);
      expect(
        Object.keys(came)
          .filter((n) => n.startsWith('new '))
          .sort(),
      ).toEqual(files.map((n) => `new ${n}`).sort());
      await site.forget([key]);
    });

    test("leaves the job's ads for the program, and takes them for no results of it", async () => {
      const key = freshKey();
      const ads = { job: NASTY.map((text, i) => `A${i} = ${text}`), machine: ['Cpus = 2'] };
      const script = 'cp "$_CONDOR_JOB_AD" job; cp "$_CONDOR_MACHINE_AD" machine; test -f .job.ad';
      await run(site, [shellJob(key, script, { ads })]);
      expect(await watch.ended(key, ground.patience)).toMatchObject({ how: { kind: 'exited', code: 0 } });
      const into = join(ground.scratch, 'home', key);
      const came = texts((await site.fetch([{ key, outputs: 'new', stdout: false, stderr: false, into }])).get(key));
      expect(Object.keys(came).sort()).toEqual(['job', 'machine']);
      expect(came['job']).toBe(
        [...ads.job]
          .sort()
          .map((line) => `${line}\n`)
          .join(''),
      );
      expect(came['machine']).toMatch(/^Cpus = 2\nMachine = "(.+)"\nName = "\1"\n$/);
      await site.forget([key]);
    });

    test('hands over variables of every name and value', async () => {
      const key = freshKey();
      const env = Object.fromEntries(NASTY.map((text, i) => [`V${i}${i % 3 === 0 ? '.x-y z' : ''}`, text]));
      const program = { kind: 'there' as const, path: '/usr/bin/env' };
      await run(site, [spec(key, { executable: program, args: ['-0'], env: { ...env, IFS: 'x', UID: '7' } })]);
      await watch.ended(key, ground.patience);
      const into = join(ground.scratch, 'home', key);
      const outcome = (await site.fetch([{ key, outputs: [], stdout: true, stderr: true, into }])).get(key);
      const split = (line: string): [string, string] => [
        line.split('=', 1)[0] ?? '',
        line.slice(line.indexOf('=') + 1),
      ];
      const vars = new Map(texts(outcome)['stdout']?.split('\0').map(split));
      expect(vars.get('UID')).toBe('7');
      for (const [name, value] of Object.entries(env)) expect([name, vars.get(name)]).toEqual([name, value]);
      await site.forget([key]);
    });

    test('tells exit codes from signals', async () => {
      const scripts: [string, object][] = [
        ['exit 0', { kind: 'exited', code: 0 }],
        ['exit 1', { kind: 'exited', code: 1 }],
        ['exit 127', { kind: 'exited', code: 127 }],
        ['exit 143', { kind: 'exited', code: 143 }],
        ['exit 255', { kind: 'exited', code: 255 }],
        ['kill -TERM $$', { kind: 'signaled', signal: 15 }],
        ['kill -KILL $$', { kind: 'signaled', signal: 9 }],
        ['kill -INT $$', { kind: 'signaled', signal: 2 }],
        ['kill -USR1 $$', { kind: 'signaled', signal: 10 }],
        ['kill -SEGV $$', { kind: 'signaled', signal: 11 }],
      ];
      const jobs = scripts.map(([script, how]) => ({ key: freshKey(), script, how }));
      await run(
        site,
        jobs.map(({ key, script }) => shellJob(key, script)),
      );
      for (const { key, script, how } of jobs)
        expect([script, (await watch.ended(key, 60_000)).how]).toMatchObject([script, how]);
      await site.forget(jobs.map(({ key }) => key));
    });

    test('says why a program cannot start', async () => {
      const [gone, denied, badsh] = [freshKey(), freshKey(), freshKey()];
      const bad = blob(ground.scratch, 'badsh', '#!/no/such/interpreter\n');
      await run(site, [
        spec(gone, { executable: { kind: 'there', path: '/no/such/program' } }),
        spec(denied, { executable: { kind: 'there', path: '/etc/passwd' } }),
        spec(badsh, { executable: { kind: 'blob', blob: bad } }),
      ]);
      for (const [key, message] of [
        [gone, 'does not exist'],
        [denied, 'may not be executed'],
        [badsh, '/no/such/interpreter'],
      ] as const) {
        const { how } = await watch.ended(key, ground.patience);
        expect(how).toMatchObject({ kind: 'by-site', cause: 'cannot-start' });
        expect(how.kind === 'by-site' ? how.message : '').toContain(message);
      }
      await site.forget([gone, denied, badsh]);
    });

    test('runs where the job says, in one stream if it says so', async () => {
      const key = freshKey();
      const cwd = join(ground.scratch, 'some where');
      mkdirSync(cwd);
      await run(site, [shellJob(key, 'pwd; echo two >&2; echo three', { cwd, joinStderr: true })]);
      await watch.ended(key, ground.patience);
      const outcome = (
        await site.fetch([{ key, outputs: [], stdout: true, stderr: false, into: join(ground.scratch, 'home', key) }])
      ).get(key);
      expect(texts(outcome)).toEqual({ stdout: `${cwd}\ntwo\nthree\n` });
      await site.forget([key]);
    });

    test('brings streams home by byte offset while the job runs', async () => {
      const key = freshKey();
      const go = join(ground.scratch, `go.${key}`);
      await run(site, [
        shellJob(key, `printf 'one\\n'; printf 'bad' >&2; while [ ! -e '${go}' ]; do sleep 0.05; done; printf 'two'`),
      ]);
      const streams = { stdout: '', stderr: '' };
      const deadline = Date.now() + ground.patience;
      while (streams.stdout !== 'one\ntwo') {
        expect(Date.now(), JSON.stringify(streams)).toBeLessThan(deadline);
        const answer = await site.poll({
          cursor: undefined,
          follow: [{ key, stdout: streams.stdout.length, stderr: streams.stderr.length }],
        });
        for (const chunk of answer.chunks) {
          expect(chunk.offset).toBe(streams[chunk.stream].length);
          streams[chunk.stream] += Buffer.from(chunk.data).toString();
        }
        if (streams.stdout === 'one\n' && streams.stderr === 'bad') blob(ground.scratch, `go.${key}`, '');
      }
      await watch.ended(key, ground.patience);
      await site.forget([key]);
    });

    test('carries large content once and brings large results home', async () => {
      const big = blob(ground.scratch, 'big', Buffer.alloc(3_000_000, 'gryphus '));
      const keys = [freshKey(), freshKey(), freshKey()];
      await run(
        site,
        keys.map((key) =>
          shellJob(key, 'cat big big >bigger; ls -i big', {
            inputs: [{ kind: 'file', name: 'big', file: { kind: 'blob', blob: big }, executable: false }],
          }),
        ),
      );
      const inodes = new Set<string>();
      for (const key of keys) {
        expect(await watch.ended(key, ground.patience)).toMatchObject({ how: { kind: 'exited', code: 0 } });
        const into = join(ground.scratch, 'home', key);
        const outcome = (await site.fetch([{ key, outputs: ['bigger'], stdout: true, stderr: false, into }])).get(key);
        expect(outcome).toMatchObject({ ok: true });
        const [file, out] = outcome?.files ?? [];
        const parts = [file, out].sort((a, b) => (a?.kind ?? '').localeCompare(b?.kind ?? ''));
        expect(
          readFileSync(parts[0]?.path ?? '').equals(Buffer.concat([readFileSync(big.path), readFileSync(big.path)])),
        ).toBe(true);
        inodes.add(readFileSync(parts[1]?.path ?? '', 'utf8'));
      }
      expect(inodes.size).toBe(1);
      await site.forget(keys);
    });

    test('withdraws what has not started, and kills what has', async () => {
      const [prepared, running, stubborn, never] = [freshKey(), freshKey(), freshKey(), freshKey()];
      const trap = "trap 'echo term' TERM; while :; do sleep 0.1; done";
      await site.prepare([
        ledgerJob(ground, prepared),
        ledgerJob(ground, running, 'sleep 600'),
        ledgerJob(ground, stubborn, trap),
      ]);
      await site.commit([running, stubborn]);
      for (const key of [running, stubborn]) await watch.until(key, () => starts(ground, key) === 1, ground.patience);
      const quick = await ground.open({ killAfter: 1000 });
      const outcomes = await quick.cancel([prepared, running, stubborn, never]);
      expect([...outcomes.values()]).toEqual(Array.from({ length: 4 }, () => ({ ok: true })));
      expect([prepared, running, stubborn].map((key) => starts(ground, key))).toEqual([0, 1, 1]);
      expect((await site.audit()).records).toEqual([]);
      expect(await site.commit([prepared]).then((o) => o.get(prepared))).toMatchObject({
        ok: false,
        refusal: { kind: 'gone' },
      });
    });

    test('tells a new client everything, and an old one only what changed', async () => {
      const keys = [freshKey(), freshKey()] as const;
      await site.prepare(keys.map((key) => shellJob(key, 'sleep 600')));
      await site.commit([keys[1]]);
      await watch.until(keys[1], (r) => r.is === 'running', ground.patience);
      const other = await ground.open();
      const full = await other.poll({ cursor: undefined, follow: [] });
      expect(full.complete).toBe(true);
      expect(new Map(full.reports.map(({ key, is }) => [key, is]))).toEqual(
        new Map([
          [keys[0], 'prepared'],
          [keys[1], 'running'],
        ]),
      );
      expect(await other.poll({ cursor: full.cursor, follow: [] })).toMatchObject({ complete: false, reports: [] });
      expect((await other.poll({ cursor: 'somebody.7', follow: [] })).complete).toBe(true);
      await site.cancel([...keys]);
    });

    test('continues after its JobManager was killed', async () => {
      const key = freshKey();
      await run(site, [ledgerJob(ground, key, 'sleep 1')]);
      const before = await watch.until(key, (r) => r.is === 'running', ground.patience);
      expect(before.is).toBe('running');
      killJobManagers(ground);
      expect(await watch.ended(key, ground.patience)).toMatchObject({ how: { kind: 'exited', code: 0 } });
      expect(starts(ground, key)).toBe(1);
      await site.forget([key]);
    });

    test('sweeps what was prepared and never committed', async () => {
      const key = freshKey();
      const hasty = await ground.open({ commitWithin: -5 });
      await hasty.prepare([shellJob(key, 'exit 0')]);
      const answer = await hasty.poll({ cursor: undefined, follow: [] });
      expect(answer.reports).toEqual([]);
      expect(await hasty.commit([key]).then((o) => o.get(key))).toMatchObject({ ok: false, refusal: { kind: 'gone' } });
    });

    if (except === undefined && whole) crashTests(() => ground, more === undefined ? 1 : 3);
    more?.(() => ground);
  });
}

/** SIGKILL for every JobManager of this site, found by its working directory. */
export function killJobManagers(ground: Ground): number {
  let killed = 0;
  for (const pid of jobManagers(ground)) {
    process.kill(pid, 'SIGKILL');
    killed += 1;
  }
  return killed;
}

function jobManagers(ground: Ground): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          readlinkSync(`/proc/${pid}/cwd`) === ground.root &&
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('jobmanager.sh')
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}
