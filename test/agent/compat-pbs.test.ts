import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { call } from './said.ts';

const CONDOR = 'submit q rm hold release wait history status submit_dag tail userprio qedit prio version config_val'
  .split(' ')
  .map((name) => `condor_${name}`);

/** What HTCondor 23.9.6 says, without the usage after its errors. */
const RECORDED = readFileSync(join(import.meta.dirname, '../fixtures/condor/small-commands.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { command: string[]; status: number; stdout: string; stderr: string });

/** Messages and layouts are those recorded from OpenPBS 23.06.06. */
describe("PBS' commands", { timeout: 300_000 }, () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    await agent.ok('compat', 'install', join(agent.dir, 'bin'));
    agent.file(
      'gate.sh',
      '#!/bin/sh\n#PBS -N gated\n#PBS -l walltime=00:05:00\nuntil [ -e "$1" ]; do sleep 0.1; done\nexit 3\n',
    );
  }, 120_000);
  afterAll(async () => agent?.end());

  const ours = (command: string, ...args: string[]) => call(agent, {}, join(agent.dir, 'bin', command), args);
  const piped = (text: string, command: string, ...args: string[]) =>
    call(agent, {}, join(agent.dir, 'bin', command), args, text);
  const letters = async (...args: string[]) =>
    (await ours('qstat', ...args)).stdout
      .split('\n')
      .slice(2, -1)
      .map((line) => line.replaceAll(/ {2,}/g, ' ').trim().split(' '))
      .map((words) => `${words[0]} ${words[4]}`);

  it('submit scripts, commands, arrays and standard input', async () => {
    const gate = join(agent.dir, 'gate');
    expect(await ours('qsub', 'gate.sh', gate)).toEqual({ code: 0, stdout: '1.gryphus\n', stderr: '' });
    expect(await ours('qsub', '-h', '-J', '1-4', '-N', 'arr', '--', '/bin/sleep', '600')).toMatchObject({
      code: 0,
      stdout: '2[].gryphus\n',
    });
    expect((await piped('exit 5\n', 'qsub', '-h')).stdout).toBe('3.gryphus\n');
    expect(await ours('qsub', 'nosuch.sh')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'qsub: script file:: No such file or directory\n',
    });
    expect(await ours('qsub', '-W', 'block=true', '--', '/bin/sh', '-c', 'exit 7')).toMatchObject({
      code: 7,
      stdout: '4.gryphus\n',
    });
  });

  it('list them', async () => {
    await until('the first to run', async () => (await letters('1'))[0] === '1.gryphus R' || undefined);
    const head =
      'Job id            Name             User              Time Use S Queue\n' +
      '----------------  ---------------- ----------------  -------- - -----\n';
    const { stdout } = await ours('qstat');
    expect(stdout.startsWith(head)).toBe(true);
    expect(stdout).toMatch(/^2\[\]\.gryphus {7}arr {14}\S+ +0 H pool {12}$/m);
    expect(stdout).toMatch(/^3\.gryphus {9}STDIN {12}\S+ +0 H pool {12}$/m);
    expect(await letters('-t', '2[]')).toEqual(['2[].gryphus', '2[1].gryphus', '2[2].gryphus', '2[3].gryphus', '2[4].gryphus'].map((one) => `${one} H`)); // biome-ignore format: one line
    expect(await letters('2[3]')).toEqual(['2[3].gryphus H']);
    expect(await ours('qstat', '2')).toEqual({ code: 153, stdout: '', stderr: 'qstat: Unknown Job Id 2.gryphus\n' });
    expect(await ours('qstat', '4')).toEqual({
      code: 35,
      stdout: '',
      stderr: 'qstat: 4.gryphus Job has finished, use -x or -H to obtain historical job information\n',
    });
    expect(await letters('-x', '4.gryphus')).toEqual(['4.gryphus F']);
    const full = (await ours('qstat', '-xf', '4')).stdout;
    expect(full).toMatch(/^Job Id: 4\.gryphus\n {4}Job_Name = sh\n/);
    expect(full).toContain('\n    Exit_status = 7\n');
    const { Jobs } = JSON.parse((await ours('qstat', '-x', '-f', '-F', 'json', '1', '4')).stdout) as {
      Jobs: Record<string, Record<string, unknown>>;
    };
    expect(Jobs).toMatchObject({
      '1.gryphus': { Job_Name: 'gated', job_state: 'R', Resource_List: { walltime: '00:05:00' } },
      '4.gryphus': { job_state: 'F', Exit_status: 7 },
    });
    expect(await ours('qstat', '-z')).toEqual({ code: 1, stdout: '', stderr: "qstat: invalid option -- 'z'\n" });
  });

  it('hold, release and delete them', async () => {
    expect(await ours('qrls', '3')).toEqual({ code: 0, stdout: '', stderr: '' });
    await until('its end', async () => (await letters('-x', '3'))[0] === '3.gryphus F' || undefined);
    expect(await ours('qhold', '3')).toEqual({ code: 35, stdout: '', stderr: 'qhold: Job has finished\n' });
    expect(await ours('qdel', '99', '3', '2[2]')).toEqual({
      code: 35,
      stdout: '',
      stderr: 'qdel: Unknown Job Id 99.gryphus\nqdel: Job has finished 3.gryphus\n',
    });
    await until('the deletion', async () => (await letters('-t', '2[]')).includes('2[2].gryphus X') || undefined);
    expect(await ours('qdel', '2[]')).toMatchObject({ code: 0 });
    agent.file('../gate', '');
    await until('an empty queue', async () => (await ours('qstat')).stdout === '' || undefined);
    expect((await ours('qstat', '-x', '-f', '1')).stdout).toContain('\n    Exit_status = 3\n');
  });

  it('name an option that is not known', async () => {
    const q = ['qsub', 'qstat', 'qdel', 'qhold', 'qrls'];
    for (const command of [...q, ...CONDOR.filter((one) => one !== 'condor_version')]) {
      const { code, stderr } = await ours(command, '--nosuch');
      expect([command, code === 0, stderr]).toEqual([command, false, expect.stringContaining('--nosuch')]);
    }
  });

  it("and HTCondor's that only tools use", async () => {
    expect((await ours('condor_version')).stdout).toMatch(/^\$CondorVersion: \d+\.\d+\.\d+ .* \$\n\$CondorPlatform: /);
    expect((await ours('condor_q', '-version')).stdout).toMatch(/^\$CondorVersion/);
    expect(await ours('condor_config_val', 'NOSUCH')).toEqual({ code: 1, stdout: '', stderr: 'Not defined: NOSUCH\n' });
    agent.file('held.sub', 'executable = /bin/true\nhold = true\nlog = held.log\nqueue 2\n');
    const cluster = /cluster (\d+)/.exec((await ours('condor_submit', 'held.sub')).stdout)?.[1] ?? '';
    expect((await ours('condor_prio', '-p', '5', cluster)).code).toBe(0);
    expect((await ours('condor_prio', '+3', `${cluster}.1`)).code).toBe(0);
    expect((await ours('condor_q', cluster, '-af', 'JobPrio')).stdout).toBe('5\n8\n');
    expect((await ours('condor_prio', '-p', 'x', cluster)).stderr).toBe("'x' is not a priority\n");
    for (const { command, status, stdout, stderr } of RECORDED) {
      const [name = '', ...words] = command.map((word) => (word === 'HELD' ? `${cluster}.0` : word));
      const said = await ours(name, ...words);
      expect({ command, code: said.code, stdout: said.stdout, stderr: said.stderr }).toEqual({
        command,
        code: status,
        stdout,
        stderr,
      });
    }
    expect((await ours('condor_wait', '-wait', '1', 'held.log')).code).toBe(1);
    expect((await ours('condor_release', cluster)).code).toBe(0);
    expect(await ours('condor_wait', 'held.log')).toMatchObject({ code: 0, stdout: 'All jobs done.\n' });
  });

  it('submit a DAG with the words of condor_submit_dag, from which tools read the cluster', async () => {
    agent.file('node.sub', 'executable = /bin/true\ntransfer_executable = false\nqueue\n');
    agent.file('diamond.dag', 'JOB A node.sub\n');
    const files = `-----------------------------------------------------------------------
File for submitting this DAG to HTCondor           : diamond.dag.condor.sub
Log of DAGMan debugging messages                   : diamond.dag.dagman.out
Log of HTCondor library output                     : diamond.dag.lib.out
Log of HTCondor library error messages             : diamond.dag.lib.err
Log of the life of condor_dagman itself            : diamond.dag.dagman.log

`;
    const rule = `${'-'.repeat(71)}\n`;
    expect(await ours('condor_submit_dag', '-no_submit', 'diamond.dag')).toEqual({
      code: 0,
      stdout: `\n${files}-no_submit given, not submitting DAG to HTCondor. You can do this with:\n"condor_submit diamond.dag.condor.sub"\n${rule}`,
      stderr: '',
    });
    const { code, stdout } = await ours('condor_submit_dag', '-f', '-maxjobs', '2', 'diamond.dag');
    const [, cluster] = /submitted to cluster (\d+)\./.exec(stdout) ?? [];
    expect([code, stdout]).toEqual([
      0,
      `Submitting job(s).\n1 job(s) submitted to cluster ${cluster}.\n\n${files}${rule}`,
    ]);
    expect(await agent.ok('wait', `${cluster}`)).toMatch(/All jobs done/);
  });

  it('run a command beside a job, which knows its slot', async () => {
    agent.file(
      'in the job.sub',
      'executable = /bin/sh\narguments = "-c \'echo $_CONDOR_SLOT >slot; sleep 600\'"\nqueue\n',
    );
    const cluster = /cluster (\d+)/.exec((await ours('condor_submit', 'in the job.sub')).stdout)?.[1] ?? '';
    await until(
      'it to run',
      async () => (await ours('condor_q', cluster, '-af', 'JobStatus')).stdout === '2\n' || undefined,
    );
    const said = await until('its slot', async () => {
      const one = await ours('condor_ssh_to_job', '-auto-retry', cluster, 'cat', 'slot', '&&', 'exit', '7');
      return one.stdout === '' ? undefined : one;
    });
    expect(said).toEqual({ code: 7, stdout: expect.stringMatching(/^slot1_\d+\n$/), stderr: '' });
    const host = (await ours('condor_q', cluster, '-af', 'RemoteHost')).stdout;
    expect(host.startsWith(`${said.stdout.trim()}@`)).toBe(true);
    expect((await ours('condor_rm', cluster)).code).toBe(0);
  });
});
