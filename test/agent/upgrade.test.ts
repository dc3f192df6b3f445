import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isOlder } from '../../src/client/upgrade.ts';
import { removeTree } from '../remove-tree.ts';
import { SLOW } from '../slow.ts';
import { CLI, TestAgent, until } from './agent.ts';

it.each([
  ['0.9.0', '0.10.0', true],
  ['0.1.0', '0.1.0', false],
  ['1.0.0', '0.9.9', false],
  ['0', '0.1.0', true],
  ['0.1', '0.1.1', true],
])('version %s is older than %s: %s', (one, other, older) => {
  expect(isOlder(one, other)).toBe(older);
});

describe.skipIf(!SLOW)('an upgrade while the older version runs', () => {
  let agent: TestAgent;
  let newer: TestAgent;
  let installed: string;
  beforeAll(() => {
    agent = new TestAgent();
    // The same program, installed elsewhere as another version.
    installed = mkdtempSync('/tmp/gup-');
    const dist = dirname(dirname(CLI));
    cpSync(dist, join(installed, 'dist'), { recursive: true });
    const about = JSON.parse(readFileSync(join(dist, '../package.json'), 'utf8')) as object;
    writeFileSync(join(installed, 'package.json'), JSON.stringify({ ...about, version: '9.8.7' }));
    symlinkSync(join(dist, '../node_modules'), join(installed, 'node_modules'));
    newer = new TestAgent(agent.env, join(installed, 'dist/bin/gryphus.js'));
  });
  afterAll(async () => {
    await agent.end();
    await removeTree(newer.dir);
    await removeTree(installed);
  });

  const versions = async (who: TestAgent) =>
    (JSON.parse(await who.ok('status', '--json')) as { readonly build?: { readonly version: string } }).build?.version;

  it('is done by the next command, and no job is lost or run twice', async () => {
    const description = (where: string, name: string) =>
      `${where}\nexecutable = /bin/sh\ntransfer_executable = false\noutput = ${name}.$(Process).out\n` +
      `arguments = "-c 'echo ${name} $(Process) >>${agent.work}/ledger; while [ ! -e ${agent.work}/go ]; do sleep 0.1; done; echo ${name}'"\n` +
      'request_memory = 50M\nqueue 2\n';
    agent.file('ledger', '');
    const there = await agent.submit(description('universe = grid\ngrid_resource = batch fork local', 'there'));
    const pool = await agent.submit(description('universe = vanilla', 'pool'));
    const started = () => agent.read('ledger').trim().split('\n').length;
    await until(
      'jobs to run at both places',
      () => agent.read('ledger').match(/there/g)?.length === 2 && started() > 2,
    );
    expect(await versions(agent)).not.toBe('9.8.7');
    // Waits for the jobs, as a command of the older version, throughout.
    const waiting = agent.run(['wait', String(there), String(pool), '--outcome']);

    expect(await newer.ok('q', String(there))).toContain('2 jobs');
    expect(await versions(newer)).toBe('9.8.7');

    agent.file('go', '');
    expect(await waiting).toMatchObject({ code: 0, stderr: '' });
    expect(agent.read('ledger').trim().split('\n').toSorted()).toEqual(['pool 0', 'pool 1', 'there 0', 'there 1']);
    for (const name of ['there.0', 'there.1', 'pool.0', 'pool.1'])
      expect(agent.read(`${name}.out`)).toBe(`${name.slice(0, -2)}\n`);
    expect(await versions(newer)).toBe('9.8.7');
    // The older version's commands still work, and leave the newer daemons alone.
    expect(await agent.ok('run', '--', 'echo', 'still')).toBe('still\n');
    expect(await versions(agent)).toBe('9.8.7');
  }, 180_000);
});
