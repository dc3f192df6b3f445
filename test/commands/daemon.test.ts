import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { ended, gryphus, start } from './cli.ts';

let home: string;
/** A directory that a job can read under any account. */
let open: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'gry-'));
  open = mkdtempSync(join(tmpdir(), 'gry-'));
  chmodSync(open, 0o755);
});
afterAll(async () => {
  await gryphus(['down'], { home });
  for (const dir of [home, open]) rmSync(dir, { recursive: true });
});
const run = (line: string | readonly string[], stdin?: string) =>
  gryphus(typeof line === 'string' ? line.split(' ') : line, { home, ...(stdin === undefined ? {} : { stdin }) });

/** Tries until it holds; throws what it saw last otherwise. */
async function until<T>(look: () => Promise<T>, holds: (seen: T) => boolean): Promise<T> {
  const end = Date.now() + 60_000;
  for (;;) {
    const seen = await look();
    if (holds(seen) || Date.now() > end) return seen;
    await new Promise((done) => setTimeout(done, 200));
  }
}

describe('a user at the command line', () => {
  it('submits from standard input, waits, and has the result', async () => {
    const text = `executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo $(Item)'"
output = out $(Process).txt
log = three.log
batch_name = three of them
queue in (a b c)
`;
    // Given a relative name, it uses the same daemons as for the absolute one.
    const submitted = await gryphus(['submit', '--home', '.'], { home, stdin: text });
    expect(existsSync(join(home, 'state/state'))).toBe(false);
    expect(submitted).toMatchObject({
      exit: 0,
      stdout: 'Submitting job(s)...\n3 job(s) submitted to cluster 1.\n',
      stderr: '',
    });
    expect(await run('wait 1 --timeout 60')).toMatchObject({ exit: 0, stdout: 'All jobs done.\n' });
    expect(await run('wait three.log -wait 20 -num 3')).toMatchObject({ exit: 0 });
    expect(readFileSync(join(home, 'out 1.txt'), 'utf8')).toBe('b\n');
    const past = await run('history 1 -af:j JobStatus ExitCode JobBatchName');
    expect(past.stdout.trimEnd().split('\n').sort()).toEqual([0, 1, 2].map((proc) => `1.${proc} 4 0 three of them`));
    const log = await run('log 1.1');
    const types = parseUserLog(log.stdout).events.map((event) => event.type);
    expect([types[0], types.at(-1)]).toEqual(['submit', 'terminated']);
    expect(types).toContain('execute');
  });

  it('sees, holds, releases, edits, follows and removes jobs', async () => {
    writeFileSync(
      join(home, 'long.sub'),
      `executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo begun; while [ ! -e ${open}/go ]; do sleep 0.2; done; echo gone'"
output = long.$(Process).out
hold = true
queue 2
`,
    );
    const { stdout } = await run('submit -terse long.sub');
    const cluster = Number(/^(\d+)\.0 - \1\.1\n$/.exec(stdout)?.[1]);
    expect(cluster).toBeGreaterThan(1);

    expect((await run(`q ${cluster}`)).stdout).toMatch(
      new RegExp(` ID: ${cluster} .* _ +_ +_ +2 +2 ${cluster}\\.0-1\n`),
    );
    expect((await run('q -hold')).stdout).toMatch(/ 15(\/0)? +submitted on hold at user's request\n/);
    expect((await run(`why ${cluster}.0`)).stdout).toContain(`gryphus release ${cluster}`);
    expect(await run(`hold ${cluster}.0`)).toMatchObject({
      exit: 1,
      stdout: '',
      stderr: `Job ${cluster}.0 already held\n`,
    });
    expect(await run(`edit ${cluster}.1 JobPrio -5`)).toMatchObject({
      exit: 0,
      stdout: 'Set attribute "JobPrio" for 1 matching jobs.\n',
    });
    expect((await run(`q ${cluster} -af:h ProcId JobPrio JobPrio<0`)).stdout).toBe(
      'ProcId JobPrio JobPrio<0\n0      0       false    \n1      -5      true     \n',
    );
    const json = JSON.parse((await run(`q ${cluster} --json --attributes ProcId,Cmd`)).stdout) as unknown;
    expect(json).toEqual([
      { Cmd: '/bin/sh', ProcId: 0 },
      { Cmd: '/bin/sh', ProcId: 1 },
    ]);

    expect(await run(`release ${cluster}.0`)).toMatchObject({ exit: 0, stdout: `Job ${cluster}.0 released\n` });
    const tail = start(['tail', '-f', `${cluster}.0`], { home });
    const whole = ended(tail);
    await new Promise((seen) => tail.stdout.once('data', seen));
    expect(
      (
        await until(
          () => run(`q ${cluster}.0 -nobatch`),
          ({ stdout: seen }) => / R  0 /.test(seen),
        )
      ).stdout,
    ).toMatch(new RegExp(`^ +${cluster}\\.0 .* R  0 +[\\d.]+ sh -c`, 'm'));
    writeFileSync(join(open, 'go'), '');
    expect(await whole).toEqual({ stdout: 'begun\ngone\n', stderr: '', exit: 0 });

    expect(await run(['rm', '--constraint', `ClusterId == ${cluster} && JobStatus == 5`])).toMatchObject({
      exit: 0,
      stdout: `All jobs matching constraint (ClusterId == ${cluster} && JobStatus == 5) have been marked for removal (1 job)\n`,
    });
    expect(await run(`wait ${cluster} --no-outcome --timeout 60`)).toMatchObject({ exit: 0 });
    expect(await run(`rm ${cluster}`)).toMatchObject({
      exit: 1,
      stderr: `Couldn't find/remove all jobs in cluster ${cluster}\n`,
    });
  });

  it('tells what is known of a job without a user log', async () => {
    const text = 'executable = /bin/sh\narguments = "-c \'exit 3\'"\ntransfer_executable = false\nqueue\n';
    const [cluster] = (await run('submit -terse', text)).stdout.split('.');
    await run(`wait ${cluster} --timeout 60`);
    const { events } = parseUserLog((await run(`log ${cluster}`)).stdout);
    expect(events.map(({ type }) => type)).toEqual(['submit', 'execute', 'terminated']);
    expect(events.at(-1)).toMatchObject({ exitCode: 3 });
  });

  it('does not take a mistyped id for a job that has ended', async () => {
    expect(await run('wait 999')).toMatchObject({ exit: 1, stderr: expect.stringContaining('There is no job 999,') });
    expect(await run('edit 999 JobPrio 1+')).toMatchObject({
      exit: 65,
      stderr: expect.stringMatching(/^gryphus: The value of JobPrio: line 1, column \d+: expected a value/),
    });
    expect(await run('vacate 999.0')).toMatchObject({ exit: 1, stderr: 'Job 999.0 not found\n' });
    expect(await run('rm 999.0 --json')).toMatchObject({
      exit: 1,
      stdout: expect.stringMatching(/^\[\n +\{\n +"job": "999.0",\n +"result": "not-found",/),
    });
  });

  it('watches the queue until Ctrl-C', async () => {
    const watch = start(['q', '--watch'], { home });
    const whole = ended(watch);
    await new Promise((seen) => watch.stdout.once('data', seen));
    watch.kill('SIGINT');
    const { stdout, stderr, exit } = await whole;
    expect(stdout).toContain('Total for all users:');
    expect([stderr, exit]).toEqual(['', 130]);
  });

  it('reports when a job did not go well', async () => {
    const { exit, stderr } = await run(
      'submit --wait',
      'executable = /bin/false\ntransfer_executable = false\nqueue\n',
    );
    expect(exit).toBe(1);
    expect(stderr).toContain('gryphus: 1 of 1 job failed: 1 exit status 1.\n');
  });

  it('finds the sites and the daemons, and ends them', async () => {
    expect((await run('site list')).stdout).toMatch(/^local +fork +local +/m);
    const status = JSON.parse((await run('status --json')).stdout) as { running: boolean; pid: number };
    expect(status).toMatchObject({ running: true, redis: 'up' });
    expect(await run('down')).toMatchObject({ exit: 0 });
    expect((await run('status')).exit).toBe(3);
    expect(existsSync(`/proc/${status.pid}/root`)).toBe(false);
  });
});

describe('a submit that cannot be', () => {
  it.each([
    ['executable = /no/such/program\nqueue\n', /no\/such\/program/],
    ['executable = /bin/true\n\nqueue x frm (a b)\n', /[Ll]ine 3/],
    [
      'executable = /bin/true\nuniverse = grid\ngrid_resource = batch slurm nosuch\nqueue\n',
      /There is no site 'nosuch'/,
    ],
    ['#!/bin/sh\n#SBATCH -n none\nhostname\n', /[Ll]ine 2[^]*'none' is not a number/],
    ['executable = /bin/true\ninput = /no/such/input\nqueue\n', /no\/such\/input/],
  ])('%j is one error, and nothing is queued', async (text, words) => {
    const { exit, stdout, stderr } = await run('submit', text);
    expect(exit).toBeGreaterThan(0);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^gryphus: /);
    expect(stderr).toMatch(words);
    expect((await run('q -totals -allusers')).stdout).toContain('Total for all users: 0 jobs;');
  });
});
