import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { htcondorPlace } from '../../scripts/htcondor.mjs';
import { parseUserLog } from '../../src/user-log/text.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { processes } from '../agent/kill.ts';

const READER = join(htcondorPlace(), 'bin/condor_check_userlogs');

const agent = new TestAgent();

beforeAll(async () => {
  agent.config('[pool]\ncpus = 4\n');
  agent.file('run.sh', '#!/bin/sh\necho "$1" >>began\nuntil [ -e "go.$1" ]; do sleep 0.1; done\n', 0o755);
  agent.file('node.sub', 'universe = scheduler\nexecutable = run.sh\narguments = $(JOB)\nlog = $(JOB).log\nqueue\n');
  agent.file('began', '');
  await agent.ok('up');
}, 60_000);
afterAll(() => agent.end(), 60_000);

const submitDag = async (name: string, text: string): Promise<string> => {
  agent.file(name, text);
  return String((JSON.parse(await agent.ok('dag', 'submit', '--json', name)) as { cluster: number }).cluster);
};

const began = (node: string) =>
  until(`node ${node}`, () => agent.read('began').split('\n').includes(node) || undefined);

/** What the log records about each job, `000 004 …` in order, by cluster. */
function told(log: string): string[] {
  const jobs = new Map<number, string[]>();
  for (const { cluster, type } of parseUserLog(agent.read(log)).events) {
    jobs.set(cluster, [...(jobs.get(cluster) ?? []), type]);
  }
  return [...jobs.values()].map((types) => types.filter((type) => type !== 'image-size').join(' '));
}

function checked(log: string): void {
  if (!existsSync(READER)) return;
  expect(execFileSync(READER, [log], { cwd: agent.work, encoding: 'utf8' })).toMatch(/^Log\(s\) are okay$/m);
}

describe("the node jobs' log", () => {
  it('says of a hold what the job’s own log says, and of what is removed with its DAG that it is', async () => {
    const dag = await submitDag('x.dag', 'JOB A node.sub\nJOB B node.sub\nSERVICE S node.sub\nJOBSTATE_LOG js\n');
    for (const node of ['A', 'B', 'S']) await began(node);
    await until('its start', () => (told('A.log')[0] === 'submit execute' ? true : undefined));
    const job = String(parseUserLog(agent.read('A.log')).events[0]?.cluster);
    await agent.ok('hold', job);
    for (const log of ['A.log', 'x.dag.nodes.log']) {
      await until(`the hold in ${log}`, () => agent.read(log).includes('\n012 ') || undefined);
      expect(agent.read(log)).toMatch(/^004 .*Job was evicted\./m);
      expect(agent.read(log)).toMatch(/^012 .*\n\tvia gryphus hold.*\n\tCode 1 Subcode 0$/im);
    }
    expect(agent.read('js')).toMatch(/A JOB_EVICTED .*\n.*A JOB_HELD /);
    await agent.ok('release', job);
    agent.file('go.A', '');
    await until('A to end', () => /A JOB_TERMINATED /.test(agent.read('js')) || undefined);
    await agent.ok('rm', dag);
    await agent.ok('wait', '--no-outcome', '--timeout', '60', dag).catch(() => undefined);
    await until('the manager to end', () => existsSync(join(agent.work, 'x.dag.metrics')) || undefined);
    const logged = told('x.dag.nodes.log').sort();
    expect(logged).toEqual([
      'submit execute aborted',
      'submit execute aborted',
      'submit execute evicted held released execute terminated',
    ]);
    checked('x.dag.nodes.log');
    checked('A.log');
  }, 120_000);
});

describe('a DAG that is removed while it has a FINAL node', () => {
  it('settles its status and its metrics', async () => {
    agent.file('go.F', '');
    const text = 'JOB C node.sub\nJOB D node.sub\nPARENT C CHILD D\nFINAL F node.sub\nNODE_STATUS_FILE y.st 0\n';
    const dag = await submitDag('y.dag', text);
    await began('C');
    await agent.ok('rm', dag);
    await until('its end', () => existsSync(join(agent.work, 'y.dag.metrics')) || undefined);
    const status = agent.read('y.st');
    expect(status).toMatch(/DagStatus = 5;/);
    const nodes = [...status.matchAll(/Node = "(\w)";\s+NodeStatus = (\d);/g)].map(([, node, is]) => `${node}${is}`);
    expect(nodes).toEqual(['C6', 'D7', 'F5']);
    expect(JSON.parse(agent.read('y.dag.metrics'))).toMatchObject({
      nodes_failed: 1,
      total_nodes_run: 2,
      jobs_submitted: 2,
      jobs_succeeded: 2,
    });
    expect(told('y.dag.nodes.log').map((types) => types.split(' ').at(-1))).toEqual(['aborted', 'terminated']);
    checked('y.dag.nodes.log');
  }, 120_000);
});

describe('`down` after DAGs with scripts', () => {
  it('leaves no process behind', async () => {
    agent.file('pre.sh', '#!/bin/sh\nsleep 1000 &\necho PRE >>began\nexec sleep 1000\n', 0o755);
    const dag = await submitDag('z.dag', 'JOB P node.sub\nSCRIPT PRE P pre.sh\nJOB Q node.sub\n');
    await began('PRE');
    await began('Q');
    await agent.ok('rm', dag);
    await until('its end', () => existsSync(join(agent.work, 'z.dag.metrics')) || undefined);
    await until('an empty queue', async () => !/\d/.test(await agent.ok('q', '--json')) || undefined);
    await agent.ok('down');
    await until('all of it to be gone', () => processes(agent).length === 0 || undefined, 20_000).catch(
      () => undefined,
    );
    expect(processes(agent)).toEqual([]);
  }, 120_000);
});
