import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { htcondorPlace } from '../../scripts/htcondor.mjs';
import { parseUserLog } from '../../src/user-log/text.ts';
import { canHang, type HungMount, hungMount, removeHung } from '../sites/hung-mount.ts';
import { TestAgent, until } from './agent.ts';

const READER = join(htcondorPlace(), 'bin/condor_check_userlogs');

describe('a job whose log cannot be written', () => {
  const agent = new TestAgent();
  let hung: HungMount | undefined;

  beforeAll(async () => {
    agent.config('[pool]\ncpus = 2\n');
    if (canHang) hung = await hungMount();
    await agent.ok('up');
  });
  afterAll(async () => {
    await agent.end();
    if (hung) removeHung(hung);
  });

  const types = (name: string) => parseUserLog(agent.read(name)).events.map(({ type }) => type);
  const whole = ['submit', 'execute', 'terminated'];

  it('is refused at its submit, where that can be seen', async () => {
    execFileSync('mkfifo', [join(agent.work, 'fifo')]);
    agent.file('fifo.sub', 'executable = /bin/true\nlog = fifo\nqueue\n');
    const { code, stderr } = await agent.run(['submit', 'fifo.sub']);
    expect([code, stderr]).toEqual([65, expect.stringContaining('/fifo cannot be written: it is not a regular file.')]);
  }, 60_000);

  it.runIf(existsSync(READER))(
    'is one that HTCondor’s reader has nothing to say of, whatever happens to its jobs',
    async () => {
      const ends = agent.file('ends.sh', '#!/bin/sh\nuntil [ -e "$1" ]; do sleep 0.1; done\n', 0o755);
      const go = (proc: string | number) => join(agent.work, `go.${proc}`);
      const text = `executable = ${ends}\narguments = ${go('$(Process)')}\nlog = all.log\nqueue 3\n`;
      const cluster = await agent.submit(text);
      const seen = (proc: number, type: string, times = 1) =>
        until(`${type} of ${proc}`, () => {
          const { events } = parseUserLog(existsSync(join(agent.work, 'all.log')) ? agent.read('all.log') : '');
          return events.filter((event) => event.proc === proc && event.type === type).length >= times || undefined;
        });
      const job = (proc: number) => `${cluster}.${proc}`;
      for (const proc of [0, 1]) await seen(proc, 'execute');
      await agent.ok('rm', job(2));
      await agent.ok('hold', job(0));
      await agent.ok('vacate', job(1));
      await seen(0, 'evicted');
      await seen(1, 'evicted');
      await agent.ok('release', job(0));
      for (const proc of [0, 1]) await seen(proc, 'execute', 2);
      await agent.ok('rm', job(1));
      writeFileSync(go(0), '');
      await seen(0, 'terminated');
      for (const proc of [1, 2]) await seen(proc, 'aborted');
      expect(execFileSync(READER, ['all.log'], { cwd: agent.work, encoding: 'utf8' })).toMatch(/^Log\(s\) are okay$/m);
    },
    120_000,
  );

  it('is waited for from right after the submit on, although it does not have its job yet', async () => {
    for (const times of [1, 2, 3]) {
      await agent.submit('executable = /bin/sleep\narguments = 0.3\nlog = waited.log\nqueue\n');
      expect(await agent.ok('wait', 'waited.log', '--timeout', '60')).toBe('All jobs done.\n');
      expect(types('waited.log').filter((type) => type === 'terminated')).toHaveLength(times);
    }
  }, 120_000);

  it('harms no other, says so, and has all of its log as soon as it can be', async () => {
    mkdirSync(join(agent.work, 'logs'));
    const held = (log: string) =>
      agent.submit(`executable = /bin/true\nhold = true\nlog = ${log}\nmy.which = "${log}"\nqueue\n`);
    const moved = await held('logs/moved.log');
    const piped = await held('piped.log');
    const jobs = [moved, piped];
    await until('the submit to be logged', () => types('piped.log').includes('submit') || undefined);
    rmSync(join(agent.work, 'piped.log'));
    execFileSync('mkfifo', [join(agent.work, 'piped.log')]);
    renameSync(join(agent.work, 'logs'), join(agent.work, 'away'));
    await agent.ok('release', ...jobs.map(String));
    const well = await agent.submit('executable = /bin/true\nlog = well.log\nqueue\n');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(well), ...jobs.map(String));
    await until('the other log to be whole', () => types('well.log').at(-1) === 'terminated' || undefined, 5000);
    expect(types('well.log').filter((type) => type !== 'image-size')).toEqual(whole);
    const status = await until('both to be said', async () => {
      const text = await agent.ok('status');
      return /User logs: +2 cannot be written now; their events are kept/.test(text) ? text : undefined;
    });
    expect(status).toContain(`${join(agent.work, 'logs/moved.log')}, since `);
    expect(JSON.parse(await agent.ok('status', '--json'))).toMatchObject({ userLogs: { count: 2 } });
    const waiting = await agent.submit('executable = /bin/true\nhold = true\nlog = piped.log\nqueue\n').catch(() => 0);
    // The submit refuses it now: the same problem is not reported twice.
    expect(waiting).toBe(0);
    // Ending does not wait for it either, and the next Scheduler still has the same events pending.
    const began = Date.now();
    await agent.ok('down');
    expect(Date.now() - began).toBeLessThan(20_000);
    await agent.ok('up');
    renameSync(join(agent.work, 'away'), join(agent.work, 'logs'));
    rmSync(join(agent.work, 'piped.log'));
    for (const log of ['logs/moved.log', 'piped.log'])
      await until(`${log} to be whole`, () => types(log).at(-1) === 'terminated' || undefined);
    await until('no more to be said', async () => !(await agent.ok('status')).includes('User logs:') || undefined);
    expect(types('logs/moved.log').filter((type) => type !== 'image-size')).toEqual([
      'submit',
      'released',
      ...whole.slice(1),
    ]);
  }, 150_000);

  it.runIf(canHang)(
    'because its file system hangs, holds up neither others nor `down`',
    async () => {
      const dir = hung?.dir ?? '';
      const job = await agent.submit(`executable = /bin/true\nhold = true\nlog = ${agent.work}/before.log\nqueue\n`);
      await agent.ok('edit', String(job), 'UserLog', `"${dir}/hung.log"`);
      await agent.ok('release', String(job));
      const others = await agent.submit('executable = /bin/true\nlog = other.$(Process).log\nqueue 3\n');
      await agent.ok('wait', '--no-outcome', '--timeout', '60', String(job), String(others));
      for (const proc of [0, 1, 2]) {
        const log = `other.${proc}.log`;
        const ended = () => existsSync(join(agent.work, log)) && types(log).at(-1) === 'terminated';
        await until('the others’ logs', () => ended() || undefined, 5000);
        expect(types(log).filter((type) => type !== 'image-size')).toEqual(whole);
      }
      const told = async () => (await agent.ok('status')).includes('its file system does not answer');
      await until('it to be told of', async () => (await told()) || undefined);
      const began = Date.now();
      await agent.ok('down');
      expect(Date.now() - began).toBeLessThan(20_000);
      hung?.remedy();
      await agent.ok('up');
      const log = () => spawnSync('cat', [join(dir, 'hung.log')], { encoding: 'utf8' }).stdout;
      await until('the log', () => /^005 /m.test(log()) || undefined);
      await until('no more to be said', async () => !(await agent.ok('status')).includes('User logs:') || undefined);
    },
    150_000,
  );
});
