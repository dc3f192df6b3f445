import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Sge, skipWithoutSge, startSge } from '../sites/sge.ts';
import { TestAgent, until } from './agent.ts';
import { call, type Said } from './said.ts';

/** Host, queue, priority and times differ; all else is the same. */
function withoutPlace({ code, stdout, stderr }: Said): Said {
  const text = stdout
    .replaceAll(/\d\.\d{5}/g, 'PRIOR  ')
    .replaceAll(/\d\d\/\d\d\/\d{4} \d\d:\d\d:\d\d (\S+@\S+ *| {30})/g, (whole) => 'PLACE'.padEnd(whole.length))
    .replaceAll(/<(JAT_prio|JAT_start_time|JB_submission_time|queue_name)>[^<]*</g, '<$1><')
    .replaceAll(/^(qsub_time|start_time|end_time|hostname|qname|owner) +.*$/gm, '$1');
  return { code, stdout: text, stderr };
}

describe.skipIf(skipWithoutSge())("Grid Engine's commands, beside the real ones", { timeout: 120_000 }, () => {
  let agent: TestAgent;
  let sge: Sge;
  beforeAll(async () => {
    sge = await startSge({ slots: 4 });
    agent = new TestAgent();
    await agent.ok('compat', 'install', join(agent.dir, 'bin'), '--qsub', 'sge');
    agent.file('gate.sh', '#!/bin/sh\n#$ -cwd -j y\nuntil [ -e "$1" ]; do sleep 0.1; done\nexit 3\n');
    agent.file('array.sh', '#!/bin/sh\n#$ -t 1-5:2\n#$ -cwd\nsleep 600\n');
  }, 120_000);
  afterAll(async () => {
    await agent?.end();
    await sge?.stop();
  });

  const real = (command: string, ...args: string[]) => call(agent, sge.env, command, args);
  const ours = (command: string, ...args: string[]) => call(agent, {}, join(agent.dir, 'bin', command), args);

  /** The same words to both; what they said is compared. */
  async function both(command: string, ...args: string[]): Promise<Said> {
    const [theirs, mine] = [await real(command, ...args), await ours(command, ...args)];
    expect(withoutPlace(mine)).toEqual(withoutPlace(theirs));
    return mine;
  }

  it('submit, list, hold and delete with the same output and exit status', async () => {
    const gate = join(agent.dir, 'gate');
    expect((await both('qsub', '-N', 'named', 'gate.sh', gate)).stdout).toBe(
      'Your job 1 ("named") has been submitted\n',
    );
    await both('qsub', '-terse', '-h', 'gate.sh', gate);
    expect((await both('qsub', '-h', 'array.sh')).stdout).toBe(
      'Your job-array 3.1-5:2 ("array.sh") has been submitted\n',
    );
    expect((await both('qsub', '-terse', '-h', '-j', 'y', '-b', 'y', 'sleep', '600')).stdout).toBe('4\n');
    await both('qsub', 'nosuch.sh');
    for (const speak of [real, ours]) {
      await until('the first to run', async () => / named +\S+ +r /.test((await speak('qstat')).stdout) || undefined);
    }
    expect((await both('qstat')).stdout).toContain('1-5:2');
    await both('qstat', '-s', 'p');
    await both('qstat', '-g', 'd');
    await both('qstat', '-u', 'nobody');
    await both('qstat', '-xml');
    await both('qstat', '-j', '99');
    await both('qdel', '99');
    await both('qdel', 'nosuch');
    await both('qhold', '99');
    await both('qdel', '3.5');
    expect((await both('qstat', '-s', 'p')).stdout).toMatch(/ 1,3\n/);
    await both('qdel', '2', '4');
    agent.file('../gate', '');
    for (const speak of [real, ours])
      await until('the end', async () => !/ named /.test((await speak('qstat')).stdout) || undefined);
    expect((await both('qdel', '3')).code).toBe(0);
    expect((await both('qstat')).stdout).toBe('');
  });

  it('account for what has ended', async () => {
    const field = (said: Said, name: string) => new RegExp(`^${name} +(.*?) *$`, 'm').exec(said.stdout)?.[1];
    const theirs = await until('the record', async () => {
      const said = await real('qacct', '-j', '1');
      return said.code === 0 ? said : undefined;
    });
    const mine = await ours('qacct', '-j', '1');
    for (const name of ['jobname', 'jobnumber', 'taskid', 'slots', 'failed', 'exit_status', 'account', 'priority'])
      expect([name, field(mine, name)]).toEqual([name, field(theirs, name)]);
    expect(field(mine, 'exit_status')).toBe('3');
    await both('qacct', '-j', '99');
    // Deleted while it waited: Grid Engine has no record of it.
    await both('qacct', '-j', '2');
  });

  it('wait for the end with -sync', async () => {
    const said = await ours('qsub', '-cwd', '-sync', 'y', '-b', 'y', 'sh', '-c', 'exit 7');
    expect(said).toMatchObject({
      code: 7,
      stdout: expect.stringMatching(/^Your job (\d+) \("sh"\) .*\nJob \1 exited with exit code 7\.\n$/),
    });
  });
});
