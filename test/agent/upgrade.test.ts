import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Redis } from 'ioredis';
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

it('a command that cannot find out which version runs says so, and ends', async () => {
  const agent = new TestAgent();
  await agent.ok('up');
  const redis = new Redis(join(agent.home, 'state/run/redis.sock'));
  const rows = await redis.hgetall('gryphus:kv:daemon');
  try {
    await redis.set('gryphus:kv:daemon', 'no rows');
    const { code, stderr } = await agent.run(['q']);
    expect(stderr).toContain('WRONGTYPE');
    expect(code).toBe(70);
  } finally {
    await redis.del('gryphus:kv:daemon');
    await redis.hset('gryphus:kv:daemon', rows);
    redis.disconnect();
    await agent.end();
  }
}, 120_000);

/** The same program, installed elsewhere as another version; `change` gets its files before it is used. */
function installedAs(version: string | undefined, change: (dist: string) => void = () => undefined): string {
  const installed = mkdtempSync('/tmp/gup-');
  const dist = dirname(dirname(CLI));
  cpSync(dist, join(installed, 'dist'), { recursive: true });
  const about = JSON.parse(readFileSync(join(dist, '../package.json'), 'utf8')) as { readonly version: string };
  writeFileSync(join(installed, 'package.json'), JSON.stringify({ ...about, version: version ?? about.version }));
  symlinkSync(join(dist, '../node_modules'), join(installed, 'node_modules'));
  change(join(installed, 'dist'));
  return installed;
}

describe.skipIf(!SLOW)('an upgrade while the older version runs', () => {
  let agent: TestAgent;
  let newer: TestAgent;
  let installed: string;
  beforeAll(() => {
    agent = new TestAgent();
    installed = installedAs('9.8.7');
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

/** Makes an installation speak version 7 of the protocol of the central manager's clients. */
function speakSeven(dist: string): void {
  for (const file of ['daemons/bundle.js', 'cli/bundle.js']) {
    const path = join(dist, file);
    const text = readFileSync(path, 'utf8');
    const [, name = ''] = /t:"open",client:[\w$]+,map:[\w$]+,version:([\w$]+)\}/.exec(text) ?? [];
    const version = new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}=\\d+\\b`);
    expect(text).toMatch(version);
    writeFileSync(
      path,
      text.replace(version, () => `${name}=7`),
    );
    // Its code cache still has the other version.
    for (const one of readdirSync(dirname(path)).filter((other) => other.endsWith('.cache')))
      rmSync(join(dirname(path), one));
  }
}

describe.skipIf(!SLOW)("commands whose protocol is not that of the pool's central manager", () => {
  let agent: TestAgent;
  let other: TestAgent;
  let installed: string;
  beforeAll(() => {
    installed = installedAs(undefined, speakSeven);
    agent = new TestAgent();
    other = new TestAgent(agent.env, join(installed, 'dist/bin/gryphus.js'));
  });
  afterAll(async () => {
    await agent.end();
    await removeTree(other.dir);
    await removeTree(installed);
  });

  it.each([
    [
      'a newer command',
      () => [agent, other] as const,
      "speaks version 1 of its clients' protocol, not 7; replace it: gryphus down, then gryphus up",
    ],
    [
      'an older command',
      () => [other, agent] as const,
      "speaks version 7 of its clients' protocol, not 1; use the gryphus that started it",
    ],
  ])(
    '%s says so and changes nothing, and jobs are submitted and run',
    async (name, who, said) => {
      const [theirs, ours] = who();
      const go = join(agent.work, name);
      const job = `executable = /bin/sh\ntransfer_executable = false\narguments = "-c 'while [ ! -e ''${go}'' ]; do sleep 0.1; done'"\nrequest_memory = 20M\nqueue\n`;
      const running = await theirs.submit(job);
      await theirs.ok('wait', '--until', 'start', '--timeout', '60', String(running));
      const asks = await ours.run(['map', 'echo'], { input: 'a\n' });
      expect(asks.stderr).toContain(said);
      expect(asks.code).not.toBe(0);
      const more = await ours.submit(job);
      writeFileSync(go, '');
      await ours.ok('wait', '--no-outcome', '--timeout', '60', String(running), String(more));
      for (const cluster of [running, more])
        expect((await ours.ads(cluster))[0]).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      // As it says.
      await theirs.ok('down');
      expect(await ours.run(['map', 'echo'], { input: 'a\n' })).toEqual({ code: 0, stdout: 'a\n', stderr: '' });
      await ours.ok('down');
    },
    180_000,
  );
});
