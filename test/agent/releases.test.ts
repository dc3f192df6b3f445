import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { STATE_VERSION } from '../../src/util/state-version.ts';
import { TestAgent, until } from './agent.ts';
import { processes } from './kill.ts';
import { RELEASES, unpackRelease } from './release.ts';

let agent: TestAgent;
beforeEach(() => {
  agent = new TestAgent();
});
afterEach(() => agent.end());

const state = () => join(agent.home, 'state');
const states = async (...clusters: number[]) => {
  const ads = JSON.parse(await agent.ok('q', '--json', ...clusters.map(String))) as Record<string, unknown>[];
  return Object.fromEntries(ads.map((ad) => [`${String(ad['ClusterId'])}.${String(ad['ProcId'])}`, ad['JobStatus']]));
};
const carried = async () => {
  expect(await states(2, 3, 10)).toEqual({ '2.0': 5, '2.1': 5, '3.0': 1, '10.0': 1 });
  expect(readFileSync(join(state(), 'version'), 'utf8')).toBe(`${STATE_VERSION}\n`);
};

describe.each(RELEASES)('the state of release %s', (release) => {
  beforeEach(() => unpackRelease(agent, release));

  it('is carried over: what ended comes home, what is left runs, nothing runs twice', async () => {
    await carried();
    expect(JSON.parse(await agent.ok('history', '--json', '1'))).toHaveLength(3);
    agent.file('go', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '150', '5', '6', '7');
    for (const proc of [0, 1]) expect(agent.read(`site.${proc}`)).toBe('came\n');
    expect(await agent.ok('userprio', '--json')).toMatch(/"[a-zA-Z]*[fF]actor": ?7\b/);
    // The pool's job had been killed; its worker's record says so.
    const [pool] = JSON.parse(await agent.ok('history', '--json', '6')) as Record<string, unknown>[];
    expect(pool).toMatchObject({ ExitBySignal: true, ExitSignal: 9, NumJobStarts: 1 });
    expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(['B', 'pool', 'site 0', 'site 1']);
    expect(agent.read('my.dag.dagman.out')).toContain('EXITING WITH STATUS 0');
    await agent.ok('rm', '10.0');
    await until('the next of cluster 10', async () => (await states(10))['10.1'] === 1 || undefined);
    expect(readFileSync(join(state(), 'pool/journal'), 'utf8')).toMatch(/^\{"journal":2,/);
    expect(readFileSync(join(siteDir(), 'version'), 'utf8')).toBe('1\n');
  }, 200_000);

  it.each(['carrying', 'carried-over', 'noted'])(
    'is carried over after a kill at %s',
    async (point) => {
      const killed = await agent.run(['up'], { env: { GRYPHUS_CRASH_POINT: `queue.${point}` } });
      expect(killed.code).not.toBe(0);
      await carried();
    },
    120_000,
  );
});

const siteDir = () => {
  const root = join(agent.dir, 'home/.gryphus/local');
  return join(root, readdirSync(root)[0] ?? '');
};

/** Every file of the state, with its content and its time. */
function fingerprint(): string[] {
  return readdirSync(state(), { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const content = entry.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : '';
      return `${path} ${statSync(path).mtimeMs} ${content}`;
    })
    .toSorted();
}

it('the state of a newer version is refused with a sentence, and nothing is touched or started', async () => {
  unpackRelease(agent, RELEASES[0] ?? '');
  writeFileSync(join(state(), 'version'), '99\n');
  const before = fingerprint();
  const commands = [
    ['q'],
    ['up'],
    ['submit', 'done.sub'],
    ['status'],
    ['history'],
    ['backup', join(agent.dir, 'b')],
    ['recover'],
    ['site', 'audit', 'local'],
  ];
  for (const command of commands) {
    const { code, stderr } = await agent.run(command);
    expect(`${command.join(' ')}: ${stderr.split('\n')[0]}`).toContain(
      `was written by a newer Gryphus (state version 99, this one supports ${STATE_VERSION})`,
    );
    // `status` says by its exit status that nothing runs.
    expect([command, code]).toEqual([command, command[0] === 'status' ? 3 : 78]);
  }
  await agent.ok('down');
  expect(fingerprint()).toEqual(before);
  expect(processes(agent)).toEqual([]);
  expect(existsSync(join(agent.dir, 'b'))).toBe(false);
}, 120_000);
