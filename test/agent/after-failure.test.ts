import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { atTerminal } from '../commands/cli.ts';
import { TestAgent } from './agent.ts';

describe('after a failure', { timeout: 120_000 }, () => {
  const agent = new TestAgent();
  /** A cluster of six: 0 and 1 end well, 2, 3 and 4 fail alike, 5 is killed. */
  let six = 0;
  let said = '';
  beforeAll(async () => {
    agent.config('[pool]\ncpus = 4\n');
    agent.file(
      'six.sh',
      '#!/bin/sh\ncase $1 in\n0|1) exit 0 ;;\n5) kill -9 $$ ;;\nesac\n[ -e fixed ] && echo fixed && exit 0\necho begin >&2\necho "line $1: no such model" >&2\nexit 3\n',
      0o755,
    );
    const description = [
      `executable = ${join(agent.work, 'six.sh')}`,
      'arguments = $(Process)',
      'output = $(Process).out',
      'error = $(Process).err',
      'environment = "COLOUR=\'two words\'"',
      'request_memory = 64',
      '+Mine = "kept"',
      'should_transfer_files = NO',
      'batch_name = six',
      'queue 6',
    ].join('\n');
    agent.file('six.sub', `${description}\n`);
    const { code, stdout, stderr } = await agent.run(['submit', '--wait', 'six.sub']);
    six = Number(/cluster (\d+)/.exec(stdout)?.[1]);
    said = stderr;
    if (code !== 1) throw new Error(`submit --wait ended with ${code}: ${stderr}`);
  }, 120_000);
  afterAll(() => agent.end());

  it('submit --wait says how the jobs failed, equal failures once', () => {
    expect(said).toContain('4 of 6 jobs failed: 3 exit status 3, 1 signal 9.\n');
    expect(said).toMatch(
      /3 jobs: exit status 3 \(\d+\.2, \d+\.3, \d+\.4\)\n {4}\| begin\n {4}\| line \d: no such model\n/,
    );
    expect(said).toContain(`1 job: signal 9 (${six}.5)\n`);
    expect(said).toContain(`gryphus retry ${six}`);
  });

  it('why has one answer for equal failures, with the last lines of standard error', async () => {
    const why = await agent.ok('why', String(six));
    expect(why.match(/It exited with status 3/g)).toHaveLength(3);
    expect(why).toContain('| line 2: no such model\n');
    const held = await agent.submit('executable = /bin/true\nhold = true\nqueue 8\n');
    const answer = await agent.ok('why', String(held));
    expect(answer.match(/It is held/g)).toHaveLength(1);
    expect(answer).toContain(
      `The same holds for 7 other jobs: ${held}.1, ${held}.2, ${held}.3, ${held}.4, ${held}.5, …\n`,
    );
    expect(JSON.parse(await agent.ok('why', '--json', String(held)))).toHaveLength(8);
    await agent.ok('rm', String(held));
  });

  it('history --failed says why below the table', async () => {
    const text = await agent.ok('history', String(six), '--failed');
    expect(text).toMatch(
      /\n\n3 jobs: exit status 3 \(\d+\.2, \d+\.3, \d+\.4\)\n {4}\| begin\n {4}\| line \d: no such model\n/,
    );
    expect(text).not.toContain('\u001b');
  });

  it('colours are for terminals that have them', async () => {
    const words = ['history', String(six), '--failed'];
    const home = agent.home;
    expect(await atTerminal(words, { home, env: { TERM: 'xterm' } })).toContain('\u001b[31mexit status 3\u001b[0m');
    expect(await atTerminal(words, { home, env: { TERM: 'xterm', NO_COLOR: '1' } })).not.toContain('\u001b[31m');
    expect(await atTerminal(words, { home, env: { TERM: 'dumb' } })).not.toContain('\u001b[31m');
  });

  it('wait ends with the outcome of what it waited for', async () => {
    const failed = await agent.run(['wait', String(six)]);
    expect([failed.code, failed.stdout]).toEqual([3, 'All jobs done.\n']);
    expect(failed.stderr).toContain('3 jobs: exit status 3');
    expect((await agent.run(['wait', `${six}.0`])).code).toBe(0);
    expect(await agent.run(['wait', String(six), '--no-outcome'])).toMatchObject({ code: 0, stderr: '' });
    expect((await agent.run(['wait', String(six), '--until', 'start'])).code).toBe(0);
    // Failures of the past are not those of the jobs that a constraint waits for.
    expect((await agent.run(['wait', '--constraint', 'true'])).code).toBe(0);
    const held = await agent.submit('executable = /bin/true\nhold = true\nqueue\n');
    expect((await agent.run(['wait', String(held), '--until', 'settled'])).code).toBe(4);
    expect((await agent.run(['wait', '--constraint', 'true', '--until', 'settled'])).code).toBe(4);
    await agent.ok('rm', String(held));
    expect((await agent.run(['wait', String(held)])).code).toBe(3);
    expect((await agent.run(['wait', 'x.log', '--outcome'])).code).toBe(2);
  });

  it('retry --dry-run says which, and does nothing', async () => {
    const text = await agent.ok('retry', String(six), '--dry-run');
    expect(text.split('\n').map((line) => line.split(/ {2,}/).slice(0, 2))).toEqual([
      ...[2, 3, 4].map((proc) => [`${six}.${proc}`, 'exit status 3']),
      [`${six}.5`, 'signal 9'],
      ['4 jobs would be submitted again.'],
      [''],
    ]);
    expect(await agent.ok('q', '-af', 'ClusterId')).toBe('');
  });

  it('retry runs the failed jobs with their old description, once', async () => {
    agent.file('fixed', '');
    const [first] = JSON.parse(await agent.ok('retry', '--json', String(six))) as { as: string }[];
    const again = Number(first?.as.split('.')[0]);
    expect((await agent.run(['wait', String(again)])).code).toBe(3);
    const ads = await agent.ads(again);
    expect(ads.map((ad) => [ad['Arguments'] ?? ad['Args'], ad['ExitCode'], ad['Mine'], ad['NumJobStarts']])).toEqual([
      ...['2', '3', '4'].map((arg) => [arg, 0, 'kept', 1]),
      ['5', undefined, 'kept', 1],
    ]);
    expect(agent.read('3.out')).toBe('fixed\n');
    // What a submit of today makes of the file, but for the ids and times.
    const fresh = JSON.parse(await agent.ok('submit', '--dry-run', '--json', 'six.sub')) as Record<string, unknown>[];
    const [second] = ads;
    const own = [
      'ClusterId',
      'ProcId',
      'QDate',
      'EnteredCurrentStatus',
      'JobStatus',
      'Err',
      'Out',
      'Args',
      'Arguments',
    ];
    const description = Object.entries(fresh[0] ?? {}).filter(
      ([name]) => !own.includes(name) && !/^(Num|Cum|Com|Rem|Exit|LastSus)/.test(name),
    );
    for (const [name, value] of description) expect([name, second?.[name]]).toEqual([name, value]);
    const twice = await agent.run(['retry', String(six)]);
    expect([twice.code, twice.stderr]).toEqual([1, 'No failed jobs.\n']);
    const named = await agent.run(['retry', `${six}.2`, `${six}.0`, '999.0']);
    expect(named.stderr.split('\n').slice(0, 3)).toEqual([
      `Job ${six}.2 was retried before, as ${again}.0`,
      `Job ${six}.0 has not failed`,
      'Job 999.0 not found',
    ]);
  });

  it('what was removed can be retried, and what is held cannot', async () => {
    const one = await agent.submit('executable = /bin/true\nhold = true\nqueue\n');
    expect((await agent.run(['retry', `${one}.0`])).stderr).toContain('is held');
    expect((await agent.run(['retry', String(one)])).stderr).toBe(
      'No failed jobs. 1 job is held: `gryphus release` lets it run.\n',
    );
    await agent.ok('rm', String(one));
    await agent.ok('wait', '--no-outcome', String(one));
    const [again] = JSON.parse(await agent.ok('retry', '--json', String(one))) as { as: string }[];
    await agent.ok('wait', again?.as ?? '');
    const [job] = await agent.ads(Number(again?.as.split('.')[0]));
    expect([job?.['ExitCode'], job?.['RemoveReason'], job?.['HoldReason']]).toEqual([0, undefined, undefined]);
  });

  it('rm, hold and release say with --dry-run what they would do', async () => {
    const two = await agent.submit('executable = /bin/true\nhold = true\nqueue 2\n');
    expect(await agent.ok('rm', '--dry-run', '--all')).toBe(
      `${`${two}.0`.padEnd(12)} held       true\n${`${two}.1`.padEnd(12)} held       true\n2 jobs would be marked for removal.\n`,
    );
    expect(await agent.ok('release', '--dry-run', String(two))).toContain('2 jobs would be released.');
    expect((await agent.run(['hold', '--dry-run', String(two)])).code).toBe(1);
    expect(JSON.parse(await agent.ok('rm', '--dry-run', '--json', `${two}.1`))).toEqual([
      { job: `${two}.1`, state: 'held' },
    ]);
    expect(await agent.ok('completion', 'bash', '--words', 'jobs')).toBe(`${two}\n${two}.0\n${two}.1\n`);
    await agent.ok('rm', '--all');
  });
});
