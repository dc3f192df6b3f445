import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from './agent.ts';

const agent = new TestAgent();
beforeAll(async () => {
  agent.config('[scheduler]\nperiodic_interval = "1s"\n[pool]\nlimit_memory = true\n');
  agent.site('here', { url: 'local', batch: 'fork' });
  await agent.ok('up');
}, 60_000);
afterAll(() => agent.end(), 60_000);

async function settled(cluster: number): Promise<Record<string, unknown>> {
  await agent.ok('wait', '--no-outcome', String(cluster), '--until', 'settled', '--timeout', '60');
  return (await agent.ads(cluster))[0] ?? {};
}

describe('a job that runs for longer than it may', () => {
  it.each([
    ['the pool', ''],
    ['the local universe', 'universe = local'],
    ['a grid site', 'universe = grid\ngrid_resource = batch fork here'],
  ])(
    'is held, in %s',
    async (_where, lines) => {
      const sleeper = `${lines}\nexecutable = /bin/sleep\narguments = 600\ntransfer_executable = false\n`;
      const executed = await agent.submit(`${sleeper}allowed_execute_duration = 1\nqueue\n`);
      const whole = await agent.submit(`${sleeper}allowed_job_duration = 2\nqueue\n`);
      expect(await settled(executed)).toMatchObject({
        JobStatus: 5,
        HoldReasonCode: 47,
        HoldReason: 'The job exceeded allowed execute duration of 00:01',
      });
      expect(await settled(whole)).toMatchObject({ JobStatus: 5, HoldReasonCode: 46 });
    },
    90_000,
  );
});

describe('a job of the pool', () => {
  it('that was ended for its memory runs again with more, until there is no more to ask for', async () => {
    agent.file(
      'eat.sh',
      'dd if=/dev/zero bs=120M count=1 2>/dev/null | tail -c 120M | (sleep 3; wc -c)\necho "$_CONDOR_MACHINE_AD" >>runs\n',
    );
    const eater =
      'executable = /bin/sh\narguments = eat.sh\ntransfer_executable = false\nlog = eat.log\nrequest_memory = 20M\n';
    const enough = await agent.submit(`${eater}retry_request_memory = 60M, 400M\nqueue\n`);
    expect(await settled(enough)).toMatchObject({ JobStatus: 4, ExitCode: 0, RequestMemory: 400, NumJobStarts: 3 });
    const log = agent.read('eat.log');
    expect(log).toMatch(
      /^004 .*[^]*It will run again with RequestMemory = 60\.[^]*It will run again with RequestMemory = 400\./m,
    );
    expect(log).not.toMatch(/^012 /m);
    const little = await agent.submit(
      `${eater}retry_request_memory_increase = RequestMemory * 2\nretry_request_memory_max = 40M\nqueue\n`,
    );
    expect(await settled(little)).toMatchObject({
      JobStatus: 5,
      HoldReasonCode: 34,
      HoldReasonSubCode: 102,
      RequestMemory: 40,
      NumJobStarts: 2,
    });
  }, 120_000);

  it('is vacated as periodic_vacate says, and runs again', async () => {
    agent.file('twice.sh', 'echo run >>vacated.runs\n[ "$(wc -l <vacated.runs)" -gt 1 ] || exec sleep 600\n');
    const cluster = await agent.submit(
      'executable = /bin/sh\narguments = twice.sh\ntransfer_executable = false\nperiodic_vacate = NumJobStarts == 1\nqueue\n',
    );
    expect(await settled(cluster)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 2 });
    expect(agent.read('vacated.runs')).toBe('run\nrun\n');
  }, 90_000);
});

describe('core_size', () => {
  it.each([
    ['the pool', '', '2048'],
    ['the local universe', 'universe = local\n', '2048'],
    ['a grid site', 'universe = grid\ngrid_resource = batch fork here\n', '2048'],
  ])(
    'is the limit of core files in %s',
    async (_where, lines, blocks) => {
      agent.file('core.sh', 'ulimit -c\n');
      const cluster = await agent.submit(
        `${lines}executable = /bin/sh\narguments = ${agent.work}/core.sh\ntransfer_executable = false\noutput = core.$(Process)\ncore_size = $(size)\nqueue size in (1048576 0)\n`,
      );
      await agent.ok('wait', '--no-outcome', String(cluster), '--timeout', '60');
      expect([agent.read('core.0'), agent.read('core.1')]).toEqual([`${blocks}\n`, '0\n']);
    },
    60_000,
  );
});

describe('output_directory and shared inputs', () => {
  it('are done wherever files are carried', async () => {
    mkdirSync(join(agent.work, 'results'), { recursive: true });
    agent.file('common', 'c');
    agent.file('public', 'p');
    agent.file('use.sh', 'cat common public >result\nmkdir d\necho deep >d/deep\n');
    const carried =
      'executable = /bin/sh\narguments = use.sh\ntransfer_executable = false\ntransfer_input_files = use.sh\n';
    for (const [name, lines] of [
      ['pool', 'should_transfer_files = YES\n'],
      ['site', 'universe = grid\ngrid_resource = batch fork here\n'],
    ] as const) {
      mkdirSync(join(agent.work, name));
      const cluster = await agent.submit(
        `${lines}${carried}transfer_common_input = common\npublic_input_files = public\noutput_directory = ${name}\ntransfer_output_files = result, d\nqueue\n`,
      );
      await agent.ok('wait', '--no-outcome', String(cluster), '--timeout', '60');
      expect([agent.read(`${name}/result`), agent.read(`${name}/d/deep`)]).toEqual(['cp', 'deep\n']);
    }
    const { stderr } = await agent.run(['submit', '-'], { input: `${carried}output_directory = nowhere\nqueue\n` });
    expect(stderr).toMatch(/output_directory = .*nowhere: there is no directory .*\n.*mkdir -p /);
  }, 90_000);
});
