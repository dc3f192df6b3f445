import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { killMatching } from '../agent/kill.ts';
import { type TestAgent, until } from '../agent/agent.ts';
import { startSshd } from '../sites/sshd.ts';
import { agentForTools, skipWithout, startTool } from './ground.ts';

describe.skipIf(skipWithout('toil-cwl-runner', 'cwltool'))('toil 5.9 with cwltool', { timeout: 1_200_000 }, () => {
  let agent: TestAgent;
  beforeEach(async () => {
    agent = await agentForTools();
    agent.file('flow.cwl', FLOW);
    agent.file('words.json', JSON.stringify({ words: ['one', 'two', 'three'] }));
  });
  afterEach(async () => agent?.end());

  const start = () =>
    startTool(
      agent,
      'toil-cwl-runner',
      `--batchSystem slurm --jobStore ${agent.work}/store --statePollingWait 2 --disableCaching --clean always --defaultMemory 100Mi --outdir out flow.cwl words.json`.split(
        ' ',
      ),
    );
  const jobs = async () => JSON.parse(await agent.ok('history', '--json')) as unknown[];

  it('runs a CWL workflow by --batchSystem slurm while the Scheduler is killed', async () => {
    await agent.ok('up');
    const tool = start();
    await until('a job to end', async () => (await jobs()).length > 0 || undefined, 300_000);
    killMatching('scheduler/main.js', agent);
    const code = await tool.ended;
    expect(code === 0 ? '' : tool.said()).toBe('');
    expect(readFileSync(join(agent.work, 'out/all.txt'), 'utf8')).toBe('one\ntwo\nthree\n');
  });

  it('runs it at a site whose sshd is killed', async () => {
    const sshd = await startSshd({ env: { PATH: agent.env['PATH'] ?? '' } });
    try {
      agent.env['HOME'] = sshd.clientHome;
      agent.env['TOIL_SLURM_ARGS'] = '--partition=far';
      agent.site('far', { url: sshd.url, batch: 'fork', more: '[limits]\npoll_min = "1s"\n' });
      const tool = start();
      await until('a job to end', async () => (await jobs()).length > 0 || undefined, 300_000);
      sshd.kill();
      await until(
        'the agent to notice',
        async () => (await agent.ok('site', 'list')).includes('does not answer') || undefined,
      );
      await sshd.restart();
      const code = await tool.ended;
      expect(code === 0 ? '' : tool.said()).toBe('');
      expect(readFileSync(join(agent.work, 'out/all.txt'), 'utf8')).toBe('one\ntwo\nthree\n');
    } finally {
      await sshd.stop();
    }
  });
});

const FLOW = `cwlVersion: v1.0
class: Workflow
requirements: {ScatterFeatureRequirement: {}}
inputs: {words: "string[]"}
outputs:
  total: {type: File, outputSource: join/out}
steps:
  say:
    run:
      class: CommandLineTool
      baseCommand: [echo]
      inputs: {word: {type: string, inputBinding: {position: 1}}}
      outputs: {out: stdout}
      stdout: said.txt
    scatter: word
    in: {word: words}
    out: [out]
  join:
    run:
      class: CommandLineTool
      baseCommand: [cat]
      inputs: {files: {type: "File[]", inputBinding: {position: 1}}}
      outputs: {out: stdout}
      stdout: all.txt
    in: {files: say/out}
    out: [out]
`;
