import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CLI, TestAgent, until } from './agent.ts';
import { MAY_BE_ANOTHER, runOn } from './machine.ts';
import { RELEASES, unpackRelease } from './release.ts';

let agent: TestAgent;
beforeEach(() => {
  agent = new TestAgent();
});
afterEach(() => agent.end());

const HELD = 'executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue 2\n';
const state = () => join(agent.home, 'state');
const aof = () => join(state(), 'redis/appendonlydir/appendonly.aof.1.incr.aof');
const clusters = async () => {
  const ads = JSON.parse(await agent.ok('q', '--json')) as Record<string, unknown>[];
  return [...new Set(ads.map((ad) => Number(ad['ClusterId'])))].toSorted((a, b) => a - b);
};

describe("the queue's file", () => {
  it('that has a changed byte in a value is put right at the next start, which status and the log say', async () => {
    const cluster = await agent.submit(HELD);
    await agent.ok('down');
    const bytes = readFileSync(aof());
    const at = bytes.indexOf('/bin/true');
    expect(at).toBeGreaterThan(0);
    const changed = Buffer.from(bytes);
    changed.writeUInt8(changed.readUInt8(at + 5) ^ 0x20, at + 5);
    writeFileSync(aof(), changed);
    const said = `Byte ${at + 5} of the queue's file ${aof()} had changed by itself, from 0x74 to 0x54; it was put back.`;
    expect(await agent.ok('up')).toContain(`Damage:      1 byte put back; `);
    expect(await agent.ok('status')).toContain(said);
    expect((await agent.ads(cluster))[0]?.['Cmd']).toBe('/bin/true');
    await until('it to be said', () => agent.log('scheduler.log').includes(said) || undefined);
    expect(readFileSync(aof()).subarray(0, bytes.length).equals(bytes)).toBe(true);
    expect((await agent.run(['status', '--json'])).stdout).toContain('"repairs": {');
  }, 60_000);

  it('that has more damage is refused with the place; the mend that is named works', async () => {
    await agent.submit(HELD);
    await agent.ok('down');
    const bytes = readFileSync(aof());
    const at = bytes.indexOf('/bin/true');
    bytes.write('/tmp/evil', at);
    writeFileSync(aof(), bytes);
    const refused = await agent.run(['q']);
    expect(refused.code).toBe(69);
    expect(refused.stderr).toContain(`The queue's file ${aof()} is damaged between bytes 0 and ${bytes.length}`);
    expect(readFileSync(aof()).equals(bytes)).toBe(true);
    const [, mend = ''] = /go on with what is there: (rm \S+);/.exec(refused.stderr) ?? [];
    execFileSync('/bin/sh', ['-c', mend]);
    expect(await clusters()).toEqual([1]);
  }, 60_000);

  it('that was cut: what is lost is said, and no lost number is given again', async () => {
    await agent.submit(HELD);
    await agent.ok('down');
    const before = statSync(aof()).size;
    expect(await agent.submit(HELD)).toBe(2);
    expect(await agent.submit(HELD)).toBe(3);
    await agent.ok('down');
    truncateSync(aof(), before + 10);
    expect(await clusters()).toEqual([1]);
    expect(agent.log('scheduler.log')).toContain('The queue lacks its latest changes: clusters 2 to 3, and');
    expect(await agent.submit(HELD)).toBe(4);
    // It is said once.
    await agent.ok('down');
    await agent.ok('up');
    expect(agent.log('scheduler.log').match(/lacks its latest changes/g)).toHaveLength(1);
  }, 120_000);

  it.each([
    ['a flipped bit', (bytes: Buffer, at: number) => bytes.writeUInt8(bytes.readUInt8(at) ^ 1, at)],
    ['a hole', (bytes: Buffer, at: number) => bytes.fill(0, at, at + 512)],
  ])(
    'that has %s is left as it is; the mend that is named works',
    async (_, damage) => {
      await agent.submit(HELD);
      await agent.submit(HELD);
      await agent.ok('down');
      const bytes = readFileSync(aof());
      // The mark of a value's length, after the first submit.
      const second = bytes.lastIndexOf('ad:2');
      damage(bytes, bytes.indexOf('\r\n$', second) + 2);
      // Without them Redis itself finds it.
      rmSync(join(state(), 'redis/appendonlydir/gryphus.sums'));
      writeFileSync(aof(), bytes);
      const refused = await agent.run(['q']);
      expect(refused.code).toBe(69);
      expect(refused.stderr).toContain(`The queue's file ${aof()} (${bytes.length} bytes) is damaged`);
      expect(readFileSync(aof()).equals(bytes)).toBe(true);
      const [mend = ''] = /redis-check-aof --fix .*/.exec(refused.stderr) ?? [];
      execFileSync('/bin/sh', ['-c', mend], { input: 'y\n', stdio: ['pipe', 'ignore', 'ignore'] });
      expect(await clusters()).toEqual([1]);
      expect(agent.log('scheduler.log')).toContain('The queue lacks its latest changes: ');
      expect(await agent.submit(HELD)).toBe(3);
    },
    120_000,
  );
});

it('a history with a torn line shows every job that it had; one with a damaged line says which, and shows the others', async () => {
  unpackRelease(agent, RELEASES.at(-1) ?? '');
  const file = join(state(), 'history/2026-11.jsonl');
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"j":"9.9","c":[0,`);
  expect(JSON.parse(await agent.ok('history', '--json', '1'))).toHaveLength(3);
  await agent.ok('down');
  const all = JSON.parse(await agent.ok('history', '--json')) as readonly unknown[];
  await agent.ok('down');
  const lines = readFileSync(file, 'latin1').split('\n');
  const n = lines.findIndex((line) => line.startsWith('{"j"'));
  writeFileSync(file, lines.with(n, lines[n]?.replace('{"j"', '\0"j"') ?? '').join('\n'), 'latin1');
  const { code, stdout, stderr } = await agent.run(['history', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toHaveLength(all.length - 1);
  expect(stderr).toBe(`gryphus: The history ${file} is damaged in line ${n + 1}: 1 job of it is not shown.\n`);
}, 120_000);

describe('a home', () => {
  it('that was copied while it ran serves nothing while the original is there; moved, it goes on', async () => {
    await agent.submit(HELD);
    const copy = `${agent.home}-copy`;
    cpSync(agent.home, copy, { recursive: true, filter: (path) => !path.endsWith('.sock') });
    const refused = await agent.run(['q'], { env: { GRYPHUS_HOME: copy } });
    expect(refused.stderr).toContain(`${copy}/state is a copy of ${state()}, which is still there`);
    expect(refused.code).toBe(1);
    expect(await clusters()).toEqual([1]);
    await agent.ok('down');
    const moved = `${agent.home}-moved`;
    renameSync(agent.home, moved);
    const env = { GRYPHUS_HOME: moved };
    expect((await agent.run(['q', '--json'], { env })).stdout).toContain('"ClusterId": 1');
    await agent.run(['down'], { env });
    renameSync(moved, agent.home);
  }, 120_000);

  it.skipIf(!MAY_BE_ANOTHER)(
    'that another user copied, who may not look at the original, serves nothing until that user says so',
    async () => {
      await agent.submit(HELD);
      await agent.ok('down');
      const copy = join(agent.dir, 'copy');
      cpSync(agent.home, copy, { recursive: true });
      const other = 54_321;
      // Node 24 no longer copies a directory's mode.
      chmodSync(copy, 0o700);
      execFileSync('chown', ['-R', `${other}:${other}`, copy]);
      for (const dir of [agent.dir, agent.work]) chmodSync(dir, 0o755);
      chmodSync(agent.home, 0o700);
      const run = (...words: string[]) =>
        spawnSync(
          'setpriv',
          [`--reuid=${other}`, `--regid=${other}`, '--clear-groups', process.execPath, CLI, ...words],
          {
            cwd: agent.work,
            env: { ...agent.env, HOME: copy, GRYPHUS_HOME: copy, USER: undefined, LOGNAME: undefined },
            encoding: 'utf8',
          },
        );
      const refused = run('q');
      expect(refused.stderr).toContain(`${copy}/state is a copy of ${state()}, or was moved from there, where user `);
      expect(refused.status).toBe(1);
      const [mend = ''] = /rm '?.*\/place'?/.exec(refused.stderr) ?? [];
      execFileSync('/bin/sh', ['-c', mend]);
      // Jobs keep their owner.
      expect(JSON.parse(run('q', '--json').stdout)).toEqual([]);
      run('down');
    },
    240_000,
  );

  it('on a file system without locks is refused with the reason', async () => {
    const bin = join(agent.dir, 'bin');
    mkdirSync(bin);
    // What flock(1) does where the kernel answers ENOLCK.
    writeFileSync(join(bin, 'flock'), '#!/bin/sh\necho "flock: 9: No locks available" >&2\nexit 71\n', { mode: 0o755 });
    const { code, stderr } = await agent.run(['up'], { env: { PATH: `${bin}:${process.env['PATH']}` } });
    expect(stderr).toContain('has no locks, which the queue needs.\n  → On NFS: mount it with locks');
    expect(code).toBe(69);
    expect(await agent.ok('q')).toContain('0 jobs');
  }, 60_000);

  it.skipIf(!MAY_BE_ANOTHER)(
    'on a file system of two machines is used by one at a time, and the other is told',
    async () => {
      await agent.submit(HELD);
      const elsewhere = (...words: string[]) =>
        runOn(agent, { host: 'elsewhere', boot: '11111111-2222-3333-4444-555555555555' }, ...words);
      const refused = await elsewhere('q');
      expect(refused.stderr).toContain(`The state directory ${state()} is in use on host ${hostname()}.`);
      expect(refused.code).toBe(75);
      await agent.ok('down');
      const taken = await elsewhere('q', '--json');
      expect(taken.stdout).toContain('"ClusterId": 1');
      const back = await agent.run(['q']);
      expect(back.stderr).toContain('is in use on host elsewhere.');
      await elsewhere('down');
      await until('the directory to be free', async () => (await agent.run(['q'])).code === 0 || undefined);
    },
    180_000,
  );
});
