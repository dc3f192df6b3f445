import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DagStatus } from '../../src/index.ts';
import { type Ran, TestAgent, until } from '../agent/agent.ts';

let agent: TestAgent;
beforeAll(async () => {
  agent = new TestAgent();
  agent.file('node.sub', 'universe = scheduler\nexecutable = node.sh\narguments = $(JOB)\nqueue\n');
  // A node runs until its go.NAME exists, and reports at its start and end.
  agent.file('node.sh', '#!/bin/sh\necho "$1" >>began\nwhile [ ! -e "go.$1" ]; do sleep 0.1; done\n', 0o755);
  agent.file('began', '');
  await agent.ok('up');
}, 60_000);
afterAll(async () => {
  await agent.end();
}, 60_000);

const began = () => agent.read('began').trim().split('\n').filter(Boolean);
const go = (...nodes: readonly string[]) => nodes.forEach((node) => agent.file(`go.${node}`, ''));

async function status(name: string): Promise<DagStatus> {
  const [dag] = JSON.parse(await agent.ok('dag', 'status', name, '--json')) as DagStatus[];
  if (dag === undefined) throw new Error(`no DAG ${name}`);
  return dag;
}

async function refused(...words: readonly string[]): Promise<Ran> {
  const ran = await agent.run(words);
  expect(ran).toMatchObject({ stdout: '' });
  expect(ran.code).toBeGreaterThan(0);
  expect(ran.stderr).toMatch(/^gryphus: .*\n(\S+:\d+ .*\n)*( {2}→ .*\n)*$/);
  return ran;
}

describe('a DAG that runs', () => {
  it('is throttled, halted, resumed and watched from the command line', async () => {
    const nodes = ['A', 'B', 'C', 'D'];
    const jobs = [...nodes, 'E'].map((node) => `JOB ${node} node.sub\n`).join('');
    agent.file('wide.dag', `${jobs}PARENT ${nodes.join(' ')} CHILD E\n`);
    const waiting = agent.run(['dag', 'submit', '-maxjobs', '1', 'wide.dag', '--wait']);
    await until('the first node', () => began().length === 1 || undefined, 60_000);
    expect((await status('wide.dag')).progress).toMatchObject({ queued: 1, ready: 3, unready: 1, total: 5 });
    const watching = agent.run(['dag', 'status', 'wide.dag', '--watch']);

    expect(await agent.ok('dag', 'throttle', 'wide.dag', '--maxjobs', '3')).toMatch(/^DAG \d+ has new limits\.\n$/);
    await until('three nodes', () => began().length === 3 || undefined, 60_000);
    expect(began().sort()).toEqual(['A', 'B', 'C']);

    expect(await agent.ok('dag', 'halt', 'wide.dag')).toMatch(/^DAG \d+ is halted\.\n$/);
    expect(existsSync(join(agent.work, 'wide.dag.halt'))).toBe(true);
    go('A');
    await until('A has ended', async () => (await status('wide.dag')).progress?.done === 1 || undefined, 60_000);
    expect(await status('wide.dag')).toMatchObject({
      manager: 'running',
      progress: { done: 1, queued: 2, ready: 1, status: 'DAG_STATUS_HALTED' },
    });
    expect(await agent.ok('dag', 'status', 'wide.dag')).toContain(': halted\n');
    expect(began()).not.toContain('D');

    expect(await agent.ok('dag', 'resume', 'wide.dag')).toMatch(/^DAG \d+ is resumed\.\n$/);
    expect(existsSync(join(agent.work, 'wide.dag.halt'))).toBe(false);
    await until('D', () => began().includes('D') || undefined, 60_000);
    go('B', 'C', 'D', 'E');
    expect(await waiting).toMatchObject({ code: 0, stderr: '' });

    const { code, stdout } = await watching;
    expect(code).toBe(0);
    expect(stdout).toContain('] 0 %');
    const last = stdout.slice(stdout.lastIndexOf('DAG '));
    expect(last).toContain('(wide.dag) in');
    expect(last).toMatch(/: done\n/);
    expect(last).toContain('] 100 %');
  }, 180_000);

  it('is removed from there: a rescue file, and jobs that are gone', async () => {
    agent.file('long.dag', 'JOB X node.sub\nJOB Y node.sub\nJOB Z node.sub\nPARENT X CHILD Y\nPARENT Y CHILD Z\n');
    const waiting = agent.run(['dag', 'submit', 'long.dag', '--wait']);
    go('X');
    await until('Y', () => began().includes('Y') || undefined, 60_000);
    const { cluster } = await status('long.dag');
    expect(await agent.ok('dag', 'rm', String(cluster))).toBe(`DAG ${cluster} is marked for removal.\n`);
    expect((await waiting).code).toBe(2);
    expect(agent.read('long.dag.rescue001')).toMatch(/^DONE X$/m);
    expect(await until('its jobs are gone', async () => JSON.parse(await agent.ok('q', '--json')).length === 0)).toBe(
      true,
    );
    expect(await agent.ok('dag', 'status', 'long.dag')).toMatch(/ended with 2\n/);

    // It continues from there, and meanwhile there is no second manager of the same DAG.
    const again = agent.run(['dag', 'submit', 'long.dag', '--wait']);
    await until('its manager', async () => (await status('long.dag')).manager === 'running' || undefined, 60_000);
    for (const more of [[], ['-force'], ['-update_submit']]) {
      const { stderr } = await refused('dag', 'submit', ...more, 'long.dag');
      expect(stderr).toMatch(/DAG long\.dag is already in the queue, as cluster \d+\./);
    }
    go('Y', 'Z');
    expect((await again).code).toBe(0);
    expect(began().filter((node) => node === 'X')).toHaveLength(1);
  }, 180_000);
});

describe('what is no DAG', () => {
  it('is refused with where and why, whatever it is', async () => {
    agent.file('bytes.dag', '\u001b[31mJOB\u0000 A\nJOB A gone.sub\n');
    const { stderr } = await refused('dag', 'submit', 'bytes.dag');
    // oxlint-disable-next-line no-control-regex
    expect(stderr).not.toMatch(/[\x00-\x09\x0b-\x1f]/);
    expect(stderr).toContain('bytes.dag:1 ');
    expect(stderr).toContain('bytes.dag:2 ');
    agent.file('good.dag', 'JOB A node.sub\n');
    expect((await refused('dag', 'draw', 'good.dag', '-o', 'x.png')).stderr).toContain('"x.png"');
    expect((await refused('dag', 'draw', 'good.dag', '-o', 'no/such.svg')).stderr).toContain(
      'Cannot write "no/such.svg"',
    );
    expect((await refused('dag', 'submit', '.')).stderr).toContain('. is a directory, not a DAG file.');
  }, 60_000);
});

describe('a DAG that does not run', () => {
  it('is not steered: one clear error', async () => {
    for (const verb of ['halt', 'resume', 'rm']) {
      expect((await refused('dag', verb, 'long.dag')).stderr).toMatch(/DAG \d+ has ended\.\n {2}→ See `gryphus dag/);
      expect((await refused('dag', verb, 'nosuch.dag')).stderr).toContain('There is no DAG "nosuch.dag".');
    }
    expect((await refused('dag', 'status', '4711')).stderr).toContain('There is no DAG "4711".');
    expect((await refused('dag', 'throttle', 'long.dag')).stderr).toContain('--maxjobs');
    expect((await refused('dag', 'throttle', 'long.dag', '--maxjobs', '-3')).stderr).toContain('-3');
    expect((await refused('dag', 'draw', '4711')).stderr).toContain('4711');
  }, 120_000);
});
