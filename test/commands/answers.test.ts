import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ran, TestAgent, until } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';

const agent = new TestAgent();
beforeAll(() => agent.ok('up'), 60_000);
afterAll(() => agent.end());

const SHORT = 'executable = /bin/true\ntransfer_executable = false\n';
const json = (text: string) => JSON.parse(text) as Record<string, unknown>[];

describe('an answer about jobs that move', () => {
  const [rounds, jobs] = SLOW ? [100, 1000] : [3, 200];

  it(`calls no good job bad: ${rounds} times ${jobs} short jobs`, async () => {
    agent.file('short.sub', `${SHORT}queue ${jobs}\n`);
    for (let round = 0; round < rounds; round++) {
      const { code, stdout, stderr } = await agent.run(['submit', '--wait', '--terse', 'short.sub']);
      expect({ round, code, stderr }).toEqual({ round, code: 0, stderr: '' });
      const cluster = /^\d+/.exec(stdout)?.[0] ?? '';
      // After a wait, everything is complete where it is looked up next.
      const past = json(await agent.ok('history', cluster, '--json', '--attributes', 'ProcId,ExitCode'));
      expect(past.length).toBe(jobs);
      expect(past.every(({ ExitCode }) => ExitCode === 0)).toBe(true);
      expect(json(await agent.ok('q', '--json', cluster))).toEqual([]);
    }
  }, 3_600_000);

  it('finds in the history what the library has waited for', async () => {
    const index = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'index.js');
    const text = `
      import { Gryphus } from ${JSON.stringify(index)};
      const gryphus = await Gryphus.open();
      for (let i = 0; i < ${SLOW ? 100 : 12}; i++) {
        const { cluster } = await gryphus.submit({ text: ${JSON.stringify(`${SHORT}queue 3`)} });
        await gryphus.wait({ clusters: [cluster] });
        let n = 0;
        for await (const _ of gryphus.history({ clusters: [cluster] })) n++;
        console.log(n);
      }
      await gryphus.close();`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
      cwd: agent.work,
      env: agent.env,
    });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (more: string) => (said += more));
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
    expect(said).toBe('3\n'.repeat(SLOW ? 100 : 12));
  }, 600_000);
});

describe('an answer about jobs that have ended', () => {
  let bad: string;
  let ran: Ran;
  beforeAll(async () => {
    const text = `executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo ends $(Process) >&2; exit $(Process)'"
error = e.$(Process)
queue 3
`;
    ran = await agent.run(['submit', '--wait', '--terse', '-'], { input: text });
    bad = /^\d+/.exec(ran.stdout)?.[0] ?? '';
  }, 60_000);

  it('is said by the one who waited for them', () => {
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/^gryphus: 2 of 3 jobs failed: 1 exit status [12], 1 exit status [12]\.\n/);
  });

  it('is how they ended, from why and from history', async () => {
    const why = await agent.ok('why', bad);
    expect(why).toContain(`${bad}.1 (completed): It exited with status 1.`);
    expect(why).toContain(`→ gryphus tail --stderr ${bad}.2`);
    expect(why).not.toContain(`${bad}.0 `);
    expect(await agent.ok('why', `${bad}.0`)).toContain('It completed: exit status 0.');
    expect(await agent.ok('tail', '--stderr', `${bad}.2`)).toBe('ends 2\n');
    const table = await agent.ok('history', bad);
    expect(table.split('\n')[0]).toMatch(/ EXIT CMD$/);
    expect(table).toMatch(new RegExp(`^${bad}\\.2 .* C .* 2 +sh -c`, 'm'));
    const good = await agent.submit(`${SHORT}queue 2\n`);
    await agent.ok('wait', String(good));
    expect(await agent.ok('why', String(good))).toContain(`${good}: nothing to explain`);
    expect(await agent.run(['why', '99999'])).toMatchObject({ code: 1, stdout: '' });
  }, 60_000);

  it('names every job once, however often it was named', async () => {
    // The last to end comes first; the three ran at once.
    const past = await agent.ok('history', bad, '--json');
    expect(json(past)).toHaveLength(3);
    expect(await agent.ok('history', `${bad}.1`, bad, '--json')).toBe(past);
    const held = await agent.submit(`${SHORT}hold = true\nqueue 2\n`);
    const owner = json(await agent.ok('q', '--json', String(held)))[0]?.['Owner'] as string;
    const twice = json(await agent.ok('q', `${held}.1`, String(held), owner, '--json'));
    expect(twice.filter(({ ClusterId }) => ClusterId === held).map(({ ProcId }) => ProcId)).toEqual([0, 1]);
    await agent.ok('rm', String(held));
  }, 60_000);

  it('says where the jobs are that are not here', async () => {
    const here = await agent.submit(`${SHORT}hold = true\nqueue\n`);
    expect(await agent.run(['q', bad, '-nobatch'])).toMatchObject({
      code: 0,
      stderr: `gryphus: ${bad} has left the queue: gryphus history ${bad}\n`,
    });
    expect(await agent.run(['history', String(here)])).toMatchObject({
      code: 0,
      stderr: `gryphus: ${here} is in the queue: gryphus q ${here}\n`,
    });
    const nowhere = 'gryphus: There is no job 99999, neither in the queue nor in the history.\n';
    for (const words of [['q'], ['history'], ['top'], ['q', '--json'], ['history', '--json'], ['top', '--json']]) {
      const { code, stderr, stdout } = await agent.run([...words, '99999']);
      expect({ words, code, stderr }).toEqual({ words, code: 1, stderr: nowhere });
      if (words.includes('--json')) expect(JSON.parse(stdout)).toEqual([]);
    }
    expect((await agent.run(['q', 'nobody-here'])).stderr).toBe(
      'gryphus: There are no jobs of user nobody-here in the queue.\n',
    );
    expect(await agent.run(['q', '12.x'])).toMatchObject({ code: 2, stdout: '' });
  }, 60_000);

  it('says of a removed job that its output is not there, and of one that waits that it has not started', async () => {
    const waits = await agent.submit(`${SHORT}hold = true\noutput = never.out\nqueue\n`);
    const held = await agent.run(['tail', `${waits}.0`]);
    expect([held.code, held.stdout]).toEqual([1, '']);
    expect(held.stderr).toContain(`Job ${waits}.0 is held, and its stdout is not here: `);
    await agent.ok('rm', String(waits));
    await agent.ok('wait', '--no-outcome', String(waits));
    const gone = await agent.run(['tail', `${waits}.0`]);
    expect([gone.code, gone.stdout]).toEqual([1, '']);
    expect(gone.stderr).toContain(`Job ${waits}.0 is removed, and its stdout is not here: `);
    const far = await agent.submit(`${SHORT}requirements = false\noutput = far.out\nqueue\n`);
    const idle = await agent.run(['tail', `${far}.0`]);
    expect([idle.code, idle.stderr]).toEqual([
      1,
      `gryphus: Job ${far}.0 has not started: \`gryphus tail -f ${far}.0\` waits for it.\n`,
    ]);
    // Output that exists and is empty is not an error.
    const quiet = await agent.submit(`${SHORT}output = quiet.out\nqueue\n`);
    await agent.ok('wait', String(quiet));
    expect(existsSync(join(agent.work, 'quiet.out'))).toBe(true);
    expect(await agent.run(['tail', `${quiet}.0`])).toEqual({ code: 0, stdout: '', stderr: '' });
    await agent.ok('rm', '--all');
    await until(
      'the queue to be empty',
      async () => json(await agent.ok('q', '--all', '--json')).length === 0 || undefined,
    );
  }, 60_000);
});
