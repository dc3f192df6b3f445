import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { some } from '../slow.ts';

const NODES = 12;
/** A chain of fans: every third node waits for the two before it, which run in parallel. */
const DAG = [
  ...Array.from({ length: NODES }, (_, i) => `JOB N${i} node.sub`),
  ...Array.from({ length: NODES / 3 }, (_, i) => {
    const [a, b, c] = [3 * i, 3 * i + 1, 3 * i + 2];
    return [`PARENT N${a} N${b} CHILD N${c}`, ...(i === 0 ? [] : [`PARENT N${a - 1} CHILD N${a} N${b}`])];
  }).flat(),
  'SCRIPT POST ALL_NODES post.sh $JOB $RETURN',
  '',
].join('\n');

let agent: TestAgent;
beforeEach(() => {
  agent = new TestAgent();
  agent.file('x.dag', DAG);
  agent.file('node.sub', 'universe = scheduler\nexecutable = node.sh\narguments = $(JOB)\nqueue\n');
  agent.file('node.sh', '#!/bin/sh\necho "$1" >>trace\nsleep 0.2\n', 0o755);
  agent.file('post.sh', '#!/bin/sh\nexit $2\n', 0o755);
  agent.file('trace', '');
});
afterEach(async () => {
  await agent.end();
}, 60_000);

/** Processes of this agent whose command line matches. */
function processes(fits: RegExp): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const message = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        if (!fits.test(message)) return false;
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
        return (
          environment.includes(`GRYPHUS_HOME=${agent.home}`) || readlinkSync(`/proc/${pid}/cwd`).startsWith(agent.home)
        );
      } catch {
        return false;
      }
    });
}

const MANAGER = /^\S*node\S* .*\/dag-manager\.js /;
const VICTIMS = {
  'the DAG manager': MANAGER,
  'the Scheduler': /scheduler\/main\.js/,
  'the GridManager': /gridmanager\/main\.js/,
  Redis: /redis-server/,
} as const;

const lines = () =>
  agent
    .read('trace')
    .split('\n')
    .filter((line) => line !== '');

async function kill(fits: RegExp): Promise<void> {
  const pids = await until(`a process ${String(fits)}`, () => {
    const found = processes(fits);
    return found.length > 0 ? found : undefined;
  });
  for (const pid of pids) process.kill(pid, 'SIGKILL');
}

async function endsWell(waiting: Promise<{ code: number | null; stderr: string }>): Promise<void> {
  const { code, stderr } = await waiting;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(lines().sort()).toEqual(Array.from({ length: NODES }, (_, i) => `N${i}`).sort());
  expect(agent.read('x.dag.nodes.log').match(/^000 /gm)).toHaveLength(NODES);
}

describe('kill -9', () => {
  it('of the DAG manager, again and again: no node runs twice, none is skipped', async () => {
    const waiting = agent.run(['dag', 'submit', '--wait', 'x.dag']);
    await kill(MANAGER);
    for (const ran of [1, 4, 7, 11]) {
      await until(`${ran} nodes`, () => lines().length >= ran || undefined, 60_000);
      await kill(MANAGER);
    }
    await endsWell(waiting);
  }, 180_000);

  it.each(some(Object.entries(VICTIMS).slice(1), 3))(
    'of %s: the DAG continues',
    async (name, fits) => {
      const { stdout } = await agent.run(['dag', 'submit', 'x.dag']);
      const cluster = /cluster (\d+)/.exec(stdout)?.[1] ?? '';
      await until('3 nodes', () => lines().length >= 3 || undefined, 60_000);
      await kill(fits);
      if (name === 'the Scheduler') await agent.ok('up');
      await until('the last node', () => lines().length >= NODES || undefined, 120_000);
      await agent.ok('wait', '--no-outcome', cluster, '--timeout', '60');
      const [manager] = await agent.ads(Number(cluster));
      await endsWell(Promise.resolve({ code: Number(manager?.['ExitCode']), stderr: '' }));
    },
    240_000,
  );
});

describe('a DAG that is held, released, removed', () => {
  it('continues where it was', async () => {
    const waits = 'case $1 in N6 | N7) until [ -e go ]; do sleep 0.1; done ;; esac';
    agent.file('node.sh', `#!/bin/sh\necho "$1" >>trace\n${waits}\n`, 0o755);
    const waiting = agent.run(['dag', 'submit', '--wait', 'x.dag']);
    await until('2 nodes', () => lines().length >= 2 || undefined, 60_000);
    await agent.ok('hold', '1');
    await until('the manager has gone', () => processes(MANAGER).length === 0 || undefined, 60_000);
    await until('the job is held', async () => (await agent.ok('q', '--json', '1')).includes('"held"') || undefined);
    const before = lines().length;
    expect(before).toBeLessThan(NODES);
    agent.file('go', '');
    await agent.ok('release', '1');
    await endsWell(waiting);
  }, 120_000);

  it('writes its rescue file, removes its jobs, runs the final node, and later continues from there', async () => {
    agent.file('x.dag', `${DAG}FINAL F final.sub\n`);
    agent.file('final.sub', 'universe = scheduler\nexecutable = node.sh\narguments = final\nqueue\n');
    const waiting = agent.run(['dag', 'submit', '--wait', 'x.dag']);
    await until('4 nodes', () => lines().length >= 4 || undefined, 60_000);
    await agent.ok('rm', '1');
    // The final node decides.
    expect((await waiting).code).toBe(0);
    expect(lines().filter((line) => line === 'final')).toHaveLength(1);
    expect(agent.read('x.dag.rescue001')).toMatch(/^DONE N0$/m);
    const ran = lines().length - 1;
    expect(ran).toBeLessThan(NODES);
    expect((await agent.run(['dag', 'submit', '--wait', 'x.dag'])).code).toBe(0);
    for (let i = 0; i < NODES; i++) expect(lines()).toContain(`N${i}`);
  }, 180_000);
});
