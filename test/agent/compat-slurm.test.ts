import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { type Slurm, skipWithoutSlurm, startSlurm } from '../sites/slurm.ts';
import { TestAgent, until } from './agent.ts';
import { call } from './said.ts';

/** Fields of `--Format` that do not depend on where the job runs. */
const LONG =
  'jobid:8,name:.8,statecompact:3,state:10,timelimit,numnodes,numcpus,cpus-per-task,arraytaskid,comment,restartcnt,batchflag,stdin:12';

const JOBS = z.object({ jobs: z.array(z.record(z.string(), z.unknown())) });

describe.skipIf(skipWithoutSlurm())("Slurm's commands, beside the real ones", { timeout: 120_000 }, () => {
  let agent: TestAgent;
  let slurm: Slurm;
  beforeAll(async () => {
    slurm = await startSlurm({ nodes: 1, cpus: 4 });
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 4\n');
    await agent.ok('compat', 'install', join(agent.dir, 'bin'));
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await slurm?.stop();
  });

  const real = (command: string, ...args: string[]) => call(agent, slurm.env, command, args);
  const ours = (command: string, ...args: string[]) => call(agent, {}, join(agent.dir, 'bin', command), args);

  it('submit, list and end jobs with the same output and exit status', async () => {
    const long: string[] = [];
    for (const speak of [real, ours]) {
      const gate = join(agent.dir, speak === real ? 'real' : 'ours');
      const first = await speak(
        'sbatch',
        '-J',
        'named',
        '-t',
        '5',
        '-o',
        '/dev/null',
        '--wrap',
        `until [ -e ${gate} ]; do sleep 0.1; done; exit 3`,
      );
      expect(first).toEqual({ code: 0, stdout: 'Submitted batch job 1\n', stderr: '' });
      const second = await speak(
        'sbatch',
        '--parsable',
        '-t',
        '5',
        '-d',
        'afterok:1',
        '-o',
        '/dev/null',
        '--wrap',
        'true',
      );
      expect(second).toEqual({ code: 0, stdout: '2\n', stderr: '' });
      const format = '%.6i|%.10j|%.2t|%T|%D|%C|%l';
      const listed = await until('the first to run', async () => {
        const { stdout } = await speak('squeue', '-S', 'i', '-o', format);
        return stdout.includes('RUNNING') ? stdout : undefined;
      });
      expect(listed).toBe(
        ' JOBID|      NAME|ST|STATE|NODES|CPUS|TIME_LIMIT\n     1|     named| R|RUNNING|1|1|5:00\n' +
          '     2|      wrap|PD|PENDING|1|1|5:00\n',
      );
      long.push((await speak('squeue', '-S', 'i', '-O', LONG)).stdout);
      expect((await speak('squeue', '-h', '-j', '2', '-o', '%r')).stdout).toBe('Dependency\n');
      expect(await speak('squeue', '-j', '99')).toEqual({
        code: 1,
        stdout: '',
        stderr: 'slurm_load_jobs error: Invalid job id specified\n',
      });
      agent.file(`../${speak === real ? 'real' : 'ours'}`, '');
      await until('the verdict', async () => {
        const { stdout } = await speak('squeue', '-h', '-o', '%i %r');
        return stdout === '2 DependencyNeverSatisfied\n' ? true : undefined;
      });
      expect(await speak('scancel', '2')).toEqual({ code: 0, stdout: '', stderr: '' });
      await until('an empty queue', async () => ((await speak('squeue', '-h')).stdout === '' ? true : undefined));
      const ended = (await speak('squeue', '-t', 'FAILED', '-h', '-O', 'jobid:4,state:10,exit_code:4')).stdout;
      expect(ended).toBe('1   FAILED    768 \n');
    }
    expect(long[1]).toBe(long[0]);
  });

  it('list the tasks beyond an array’s limit as pending', async () => {
    const seen: string[][] = [];
    const starting: string[] = [];
    for (const speak of [real, ours]) {
      const name = speak === real ? 'array-real' : 'array-ours';
      const wait = `until [ -e ${join(agent.dir, name)} ]; do sleep 0.1; done`;
      const array = ['--parsable', '-t', '5', '--array=1-6%2', '-o', '/dev/null', '--wrap', wait];
      const id = (await speak('sbatch', ...array)).stdout.trim();
      const look = async (...words: string[]) => (await speak('squeue', '-h', '-j', id, ...words)).stdout;
      const each = await until('two tasks to run', async () => {
        const text = await look('-r', '-o', '%K %T');
        return text.match(/RUNNING/g)?.length === 2 ? text.split('\n').toSorted().join('\n') : undefined;
      });
      const together = await look('-t', 'PD', '-o', '%i %r');
      const starts = (await speak('squeue', '--start', '-j', id)).stdout;
      const one = await speak('scontrol', 'show', 'job', `${id}_5`);
      seen.push([each, together.replace(id, 'A'), /JobState=\S+ Reason=\S+/.exec(one.stdout)?.[0] ?? one.stderr]);
      if (speak === ours) {
        const { stdout } = await ours('sacct', '-n', '-X', '-P', '-j', id, '-o', 'JobID,State');
        const rows = [1, 2, 3, 4, 5, 6].map((task) => `${id}_${task}|${task < 3 ? 'RUNNING' : 'PENDING'}`);
        expect(stdout.trim().split('\n').toSorted()).toEqual(rows);
      }
      starting.push(
        starts
          .replaceAll(/(?<= )(main|pool)/g, 'PART')
          .replace(`${id}_[`, 'A_[')
          .replaceAll(/ +/g, ' '),
      );
      // One that is not made yet is cancelled like any other.
      expect(await speak('scancel', `${id}_5`)).toEqual({ code: 0, stdout: '', stderr: '' });
      const left = (await look('-t', 'PD', '-o', '%i %r')).replace(id, 'A');
      const none = [await look('-r', '-h'), await look(`${id}_5`)].map((text) => text.includes(`${id}_5`));
      seen.push([left, String(none)]);
      if (speak === ours) {
        const cancelled = await ours('sacct', '-n', '-X', '-P', '-j', `${id}_5`, '-o', 'JobID,State');
        expect(cancelled.stdout).toMatch(new RegExp(`^${id}_5\\|CANCELLED`));
      }
      agent.file(`../${name}`, '');
      await until('an empty queue', async () => ((await speak('squeue', '-h')).stdout === '' ? true : undefined));
    }
    expect(seen.slice(2)).toEqual(seen.slice(0, 2));
    expect(starting[1]).toBe(starting[0]);
    expect(starting[0]).toMatch(/START_TIME NODES SCHEDNODES NODELIST\(REASON\)\n A_\[3-6%2\] .* PD N\/A 1 \(null\) /);
    expect(seen[0]?.[1]).toBe('A_[3-6%2] JobArrayTaskLimit\n');
    expect(seen[1]).toEqual(['A_[3-4,6%2] JobArrayTaskLimit\n', 'false,false']);
  });

  it('describe a job with the same fields in the same order, and in JSON with the same types', async () => {
    const names = (text: string) => [...text.matchAll(/(?:^| +)([\w/:]+)=/gm)].map(([, name]) => name);
    const [theirs, mine] = [await real('scontrol', 'show', 'job', '1'), await ours('scontrol', 'show', 'job', '1')];
    expect(names(mine.stdout)).toEqual(names(theirs.stdout));
    expect(mine.stdout.endsWith('\n   \n\n')).toBe(theirs.stdout.endsWith('\n   \n\n'));
    const job = async (speak: typeof real) => {
      const document = JOBS.parse(JSON.parse((await speak('squeue', '--json', '-t', 'all')).stdout));
      return document.jobs.find(({ job_id }) => job_id === 1) ?? {};
    };
    const [real1, ours1] = [await job(real), await job(ours)];
    const kind = (value: unknown) => (Array.isArray(value) ? 'array' : typeof value);
    for (const [name, value] of Object.entries(ours1)) {
      if (value !== null && real1[name] !== null) expect([name, kind(value)]).toEqual([name, kind(real1[name])]);
    }
    for (const name of ['job_id', 'job_state', 'exit_code', 'name', 'time_limit', 'cpus', 'node_count', 'user_name'])
      expect([name, ours1[name]]).toEqual([name, real1[name]]);
  });

  it('give sinfo’s fields the same headings, and fill its tables alike', async () => {
    const letters = 'aAbBcCdDeEfFgGhlLmnNoOpPrRsStTwXYZz';
    const short = letters.replaceAll(/(?<=.)./g, '|%$&').replace(/^/, '%');
    const long =
      'available,nodeai,cpus,cpusstate,nodes,nodeaiot,gres,time,memory,nodelist,prioritytier,partition,statelong';
    for (const words of [['-o', short], ['-O', long], [], ['-s'], ['-N'], ['-o', '%10P|%.6a|%5D']]) {
      const [theirs, mine] = [await real('sinfo', ...words), await ours('sinfo', ...words)];
      const [head] = theirs.stdout.split('\n');
      expect([words, mine.stdout.split('\n')[0]]).toEqual([words, head]);
    }
    const { stdout } = await ours('sinfo', '-h', '-o', '%P %a %D %c %C');
    const [pool = ''] = stdout.split('\n');
    const [, cores = '0', busy, idle, all] = /^pool\* up 1 (\d+) (\d+)\/(\d+)\/0\/(\d+)$/.exec(pool) ?? [];
    expect([Number(cores) > 0, Number(busy) + Number(idle), all]).toEqual([true, Number(all), cores]);
    expect((await ours('sinfo', '-h', '-o', '%P', '-p', 'elsewhere')).stdout).toBe('');
    expect((await ours('sinfo', '-h', '-t', 'down')).stdout).toBe('');
  });

  it('list the accounts that jobs named, as sacctmgr does', async () => {
    const id = (await ours('sbatch', '--parsable', '-H', '-A', 'physics', '--wrap', 'true')).stdout.trim();
    // As Snakemake asks.
    const list = ['-n', '-s', 'list', 'user', userInfo().username, 'format=account%20'];
    expect((await ours('sacctmgr', ...list)).stdout).toBe(`${'physics'.padStart(20)} \n`);
    expect((await ours('sacctmgr', '-nP', 'show', 'assoc', 'format=account,user')).stdout).toBe(
      `physics|${userInfo().username}\n`,
    );
    expect((await ours('sacctmgr', 'add', 'user', 'x')).code).toBe(1);
    expect((await ours('scancel', id)).code).toBe(0);
  });

  it('account in JSON with the types that the recorded sacct has', async () => {
    const document = JOBS.parse(JSON.parse((await ours('sacct', '--json', '-j', '1')).stdout));
    expect(document.jobs).toHaveLength(1);
    expect(document.jobs[0]).toMatchObject({
      job_id: 1,
      name: 'named',
      state: { current: 'FAILED', reason: 'None' },
      exit_code: { status: 'ERROR', return_code: 3 },
      required: { CPUs: 1 },
      steps: [{ step: { id: 'batch' }, state: 'FAILED' }],
    });
  });

  it('name an option or a field that is not known', async () => {
    for (const [command, ...words] of [
      ['squeue', '--nosuch'],
      ['squeue', '-O', 'nosuch'],
      ['squeue', '-o', '%J'],
      ['sacct', '-o', 'nosuch'],
      ['sinfo', '-o', '%q'],
      ['sbatch', '--nosuch=1'],
      ['srun', '--nosuch', 'true'],
      ['sinfo', '-O', 'nosuch'],
      ['sacctmgr', 'list', 'user', 'format=nosuch'],
      ['scontrol', 'show', 'nosuch'],
    ] as const) {
      const { code, stderr } = await ours(command, ...words);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/nosuch|%J|%q/)]);
    }
    expect((await ours('scontrol', 'show', 'hostnames', 'n[08-10,3],x')).stdout).toBe('n08\nn09\nn10\nn3\nx\n');
    expect((await ours('scontrol', 'show', 'config')).stdout).toMatch(/^SchedulerTimeSlice +(= 5 sec)$/m);
  });

  it('say what their options are', async () => {
    for (const command of ['sbatch', 'squeue', 'scancel', 'sinfo', 'sacct', 'scontrol', 'sacctmgr', 'srun'])
      for (const word of ['--help', '--usage']) {
        const { code, stdout, stderr } = await ours(command, word);
        expect([code, stderr]).toEqual([0, '']);
        expect(stdout).toMatch(new RegExp(`^Usage: ${command} \\[OPTIONS\\]`));
        expect(stdout).toMatch(/^  -\w, --\w/m);
      }
    expect((await ours('sbatch', '--help')).stdout).toContain('\n  -J, --job-name=VALUE\n');
    expect((await ours('squeue', '-h', '--help')).stdout).toContain('\n  -j, --jobs=VALUE\n');
  });

  it('say the same of jobs that are not there', async () => {
    for (const [command, ...words] of [
      ['scancel', '99999'],
      ['scancel', '99999_4'],
      ['scancel', '-v', '99999'],
      ['scancel', '-v', '1'],
      ['squeue', '-j', '99999'],
      ['squeue', '-j', '99999,99998'],
      ['squeue', '-j', '1'],
      ['squeue', '-j', '1,99999'],
    ] as const)
      expect([words, await ours(command, ...words)]).toEqual([words, await real(command, ...words)]);
  });

  it('refuse in the same way', async () => {
    agent.file('bare.sh', 'echo\n');
    agent.file('good.sh', '#!/bin/sh\n');
    for (const words of [['nosuch.sh'], ['bare.sh'], ['--nosuch=1', 'good.sh']]) {
      const [theirs, mine] = [await real('sbatch', ...words), await ours('sbatch', ...words)];
      expect([mine.code === 0, mine.stdout]).toEqual([theirs.code === 0, theirs.stdout]);
      if (words[0] !== '--nosuch=1') expect(mine.stderr).toBe(theirs.stderr);
      else expect(mine.stderr).toContain('--nosuch');
    }
  });

  it('run one task where they are called, outside a job too', async () => {
    expect(
      await ours('srun', '-c', '1', '--mem=64', '-t', '5', '-p', 'pool', 'sh', '-c', 'echo out; exit 5'),
    ).toMatchObject({
      code: 5,
      stdout: 'out\n',
    });
  });

  it('run the tasks of a step outside a job as srun does', async () => {
    const tasks = async (speak: typeof real, ...words: string[]) => {
      const { code, stdout, stderr } = await speak('srun', ...words);
      const sorted = (text: string) => text.trimEnd().split('\n').sort();
      // A step that is ended for one task's signal is named by its id there.
      const errors = stderr.replaceAll(/^srun: Force Terminated.*\n/gm, '').replaceAll(/(?<=error: )[\w-]+:/g, 'NODE:');
      return { code, stdout: sorted(stdout), stderr: sorted(errors) };
    };
    const each = 'echo "$SLURM_PROCID of $SLURM_NTASKS"; echo "on $SLURM_LOCALID" >&2';
    for (const words of [
      ['-n', '3', 'sh', '-c', each],
      ['-n3', '-l', 'sh', '-c', each],
      ['-l', '-n', '2', 'sh', '-c', 'printf "no end"; exit $((SLURM_PROCID * 3))'],
      ['-n', '2', 'sh', '-c', 'test $SLURM_PROCID = 0 || kill -9 $$'],
    ])
      expect([words, await tasks(ours, ...words)]).toEqual([words, await tasks(real, ...words)]);
  });

  it('act on nothing but what they name', async () => {
    const id = (await ours('sbatch', '--parsable', '--array=1-3', '--wrap', 'sleep 600')).stdout.trim();
    const tasks = async (format: string) =>
      (await ours('squeue', '-h', '-r', '-j', id, '-S', 'K', '-o', format)).stdout.trim().split('\n');
    const one = await ours('squeue', '-h', '-r', '-j', `${id}_3,${id}_2`, '-o', '%i');
    expect([one.code, one.stdout.trim().split('\n').sort()]).toEqual([0, [`${id}_2`, `${id}_3`]]);
    expect((await ours('squeue', '-h', '-j', `${id}_9`)).stdout).toBe('');
    expect((await ours('scontrol', 'hold', `${id}_2`)).code).toBe(0);
    await until('the hold', async () => (await tasks('%r')).includes('JobHeldUser') || undefined);
    expect((await tasks('%K %r')).filter((line) => line.endsWith('JobHeldUser'))).toEqual(['2 JobHeldUser']);
    for (const words of [
      ['-M', 'elsewhere', '-u', userInfo().username],
      ['-t', 'SUSPENDED', id],
    ])
      expect((await ours('scancel', ...words)).code).toBe(0);
    expect(await tasks('%K')).toEqual(['1', '2', '3']);
    expect(await ours('scontrol', 'hold', '9999')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/Invalid job id/),
    });
    expect((await ours('scancel', id)).code).toBe(0);
    await until('an empty queue', async () => ((await ours('squeue', '-h')).stdout === '' ? true : undefined));
  });

  it('account for what has ended', async () => {
    const { stdout } = await ours('sacct', '-P', '-o', 'JobID,JobName,State,ExitCode', '-j', '1,2');
    expect(stdout).toMatch(
      /^JobID\|JobName\|State\|ExitCode\n1\|named\|FAILED\|3:0\n1.batch\|batch\|FAILED\|3:0\n2\|wrap\|CANCELLED by \d+\|0:0\n$/,
    );
    expect((await ours('scontrol', 'show', 'job', '1')).stdout).toContain('JobState=FAILED');
    expect((await ours('condor_history', '1', '-af', 'ExitCode')).stdout).toBe('3\n');
  });
});
