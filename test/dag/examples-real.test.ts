import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { type Kind, startTarget, type Target } from '../crash/sites.ts';
import { some } from '../slow.ts';

const FOLDER = join(import.meta.dirname, '../../examples/dag');
const SHAPES = readdirSync(FOLDER).filter((name) => name.endsWith('.dag'));

let agent: TestAgent;
let target: Target | undefined;
beforeEach(() => {
  agent = new TestAgent();
  cpSync(FOLDER, agent.work, { recursive: true });
});
afterEach(async () => {
  await agent.end();
  await target?.stop();
  target = undefined;
}, 120_000);

/** Every node once, and all of its jobs successful. */
async function runs(name: string): Promise<void> {
  const { code, stderr } = await agent.run(['dag', 'submit', '--wait', name]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const metrics = JSON.parse(agent.read(`${name}.metrics`)) as Record<string, number>;
  expect(metrics['nodes_succeeded']).toBe(metrics['nodes']);
  expect(metrics['jobs_submitted']).toBe(metrics['jobs_succeeded']);
  expect(
    agent.read(`${name}.nodes.log`).match(/^005 .*\n\t\(1\) Normal termination \(return value 0\)/gm),
  ).toHaveLength(metrics['jobs_submitted'] ?? -1);
}

async function at(kind: Kind): Promise<void> {
  target = await startTarget(kind, agent);
  const site = SITES[kind];
  agent.config(site === undefined ? '[pool]\ncpus = 8\n' : `[submit]\ndefault_site = "${site}"\n`);
}

/** Where plain jobs go, if not to the pool. */
const SITES: Readonly<Partial<Record<Kind, string>>> = { 'fork, local': 'local', 'slurm, ssh': 'cluster' };

describe('the example shapes, in the pool of this machine', () => {
  it.each(some(SHAPES, 2))(
    '%s',
    async (name) => {
      await at('pool');
      await runs(name);
    },
    240_000,
  );

  it('by fork', async () => {
    await at('fork, local');
    await runs('diamond.dag');
  }, 240_000);
});

describe('on a real Slurm over ssh', () => {
  it('the diamond', async () => {
    await at('slurm, ssh');
    await runs('diamond.dag');
    for (const node of ['A', 'B', 'C', 'D']) expect(agent.read(`${node}.out`)).toBe(`${node} attempt 0\n`);
  }, 240_000);
});
