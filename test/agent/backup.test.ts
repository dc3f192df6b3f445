import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeContainer } from '../../src/backup/container.ts';
import { unpack } from '../../src/backup/unpack.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';

describe('a backup of an agent that runs', () => {
  let sshd: Sshd;
  let agent: TestAgent;
  let file: string;
  let secret: string;
  beforeAll(async () => {
    sshd = await startSshd();
    agent = new TestAgent({ HOME: sshd.clientHome });
    agent.site('c1', { url: sshd.url, batch: 'fork', more: '[limits]\nrunning = 20\nqueued = 40\n' });
    file = join(agent.dir, 'a backup');
    secret = join(agent.dir, 'secret');
    writeFileSync(secret, 'pass phrase\n');
  });
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
  });

  const submit = (name: string, script: string, site: boolean, count = 1) =>
    agent.submit(
      [
        ...(site ? ['universe = grid', 'grid_resource = batch fork c1'] : []),
        'executable = /bin/sh',
        'transfer_executable = false',
        `arguments = "-c 'echo ${name} $(Process) >>${agent.work}/ledger; ${script}'"`,
        `output = ${name}.$(Process)`,
        `log = ${name}.log`,
        `queue ${count}`,
      ].join('\n'),
    );
  const wait = (name: string) => `while [ ! -e ${agent.work}/${name} ]; do sleep 0.1; done; echo ${name}`;
  const ledger = () => agent.read('ledger').trim().split('\n').sort();
  const ads = async (command: 'q' | 'history', cluster: number) =>
    JSON.parse((await agent.ok(command, '--json', String(cluster))) || '[]') as Record<string, unknown>[];
  const restore = () => agent.run(['restore', file, '--passphrase-file', secret]);

  it('puts the queue back as it was, learns from the sites what happened since, and runs nothing twice', async () => {
    agent.file('ledger', '');
    const old = await submit('old', 'echo result', false);
    await agent.ok('wait', '--timeout', '60', String(old));
    const running = await submit('running', wait('go'), true, 2);
    const local = await submit('local', wait('go'), false);
    const held = await agent.submit('executable = /bin/true\nhold = true\nqueue\n');
    await until('three to run', async () => ledger().length === 4 || undefined);
    await until(
      'that to be known',
      async () => (await ads('q', running)).every((ad) => ad['GryphusState'] === 'running') || undefined,
    );
    expect(await agent.ok('backup', file, '--passphrase-file', secret)).toContain('written to');
    expect(readFileSync(file).includes('gryphus')).toBe(true);
    expect(readFileSync(file).includes('running.log')).toBe(false);

    // Since then: a job that the site has, one that has ended here, and one that has ended there.
    const later = await submit('later', wait('end'), true);
    const gone = await submit('gone', 'echo gone', false);
    await agent.ok('wait', '--timeout', '60', String(gone));
    await until('the later one to run', async () => ledger().includes('later 0') || undefined);
    const state = join(agent.home, 'state');
    await agent.ok('down');
    const refused = await restore();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('There is a queue here already');
    renameSync(state, `${state}.old`);

    // What cannot be put back changes nothing.
    writeFileSync(`${secret}.other`, 'another\n');
    const wrong = await agent.run(['restore', file, '--passphrase-file', `${secret}.other`]);
    expect(wrong.code).toBe(65);
    expect(wrong.stderr).toContain('the passphrase is another one, or it is damaged');
    const bytes = readFileSync(file);
    const damaged = Buffer.from(bytes);
    damaged[bytes.length >> 1] = (damaged[bytes.length >> 1] ?? 0) ^ 1;
    for (const content of [damaged, bytes.subarray(0, -20), bytes.subarray(0, 50), Buffer.from('hello\n')]) {
      writeFileSync(`${file}.bad`, content);
      const bad = await agent.run(['restore', `${file}.bad`, '--passphrase-file', secret]);
      expect(bad.code).toBe(65);
      expect(bad.stderr.split('\n')[0]).toContain('cannot be used: ');
    }
    expect(existsSync(join(state, 'redis'))).toBe(false);

    const restored = await restore();
    expect(restored.stdout + restored.stderr).toContain('1 job may have run since');
    expect(restored.code).toBe(0);
    expect((await ads('history', old)).map((ad) => ad['ExitCode'])).toEqual([0]);
    expect((await agent.run(['history', String(gone)])).stderr).toContain(`There is no job ${gone}`);
    expect((await ads('q', held)).map((ad) => ad['JobStatus'])).toEqual([5]);
    await until('the local one to be held', async () => (await ads('q', local))[0]?.['JobStatus'] === 5 || undefined);
    expect(String((await ads('q', local))[0]?.['HoldReason'])).toContain('Restored from a backup of 20');
    agent.file('go', '');
    agent.file('end', '');
    await agent.ok('wait', '--timeout', '90', String(running), String(later));
    for (const proc of [0, 1]) expect(agent.read(`running.${proc}`)).toBe('go\n');
    expect(agent.read('later.0')).toBe('end\n');
    expect(ledger()).toEqual(['gone 0', 'later 0', 'local 0', 'old 0', 'running 0', 'running 1']);
    // A number is not given twice that a site has seen.
    expect(await submit('fresh', 'true', false)).toBeGreaterThan(later);
    // The former directory is refused, if it is used again.
    expect(await agent.ok('site', 'audit', 'c1')).toBe('c1 and the queue agree.\n');
  }, 240_000);
});

describe('a restore', () => {
  let agent: TestAgent;
  let file: string;
  beforeAll(async () => {
    agent = new TestAgent();
    file = join(agent.dir, 'backup');
    await agent.submit('executable = /bin/true\nhold = true\nqueue 3\n');
    await agent.ok('backup', file);
    await agent.ok('down');
    renameSync(join(agent.home, 'state'), join(agent.home, 'state.old'));
  });
  afterAll(() => agent.end());

  const left = () => readdirSync(agent.home).filter((name) => name.startsWith('.restoring-'));
  /** Of the Redis servers that run below the agent's home. */
  const servers = () =>
    readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .filter((pid) => {
        try {
          return readlinkSync(`/proc/${pid}/cwd`).startsWith(agent.home);
        } catch {
          return false;
        }
      });
  /** The parts of the backup, packed again after a change. */
  async function changed(change: (dir: string) => void): Promise<string> {
    const dir = mkdtempSync(join(agent.dir, 'parts-'));
    const { manifest } = await unpack(file, dir, async () => '');
    writeFileSync(join(dir, 'manifest.json'), JSON.stringify(manifest));
    change(dir);
    const names = readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map((one) => join(one.parentPath, one.name).slice(dir.length + 1));
    async function* entries() {
      for (const name of names.toSorted((a) => (a === 'manifest.json' ? -1 : 1)))
        yield { name, mode: 0o600, content: readFileSync(join(dir, name)) };
    }
    await writeContainer(`${file}.changed`, entries());
    return `${file}.changed`;
  }

  it('of a queue that Redis cannot read, or that is another one, changes nothing and says so', async () => {
    const cases: readonly (readonly [string, (dir: string) => void])[] = [
      ['Redis cannot read its queue', (dir) => writeFileSync(join(dir, 'queue.rdb'), 'REDIS9999 from the future')],
      ['Redis cannot read its queue', (dir) => truncateSync(join(dir, 'queue.rdb'), 300)],
      ['its queue is that of another agent', (dir) => truncateSync(join(dir, 'queue.rdb'), 0)],
    ];
    for (const [said, change] of cases) {
      const bad = await changed((dir) => {
        change(dir);
        mkdirSync(join(dir, 'config'), { recursive: true });
        writeFileSync(join(dir, 'config/netrc'), '');
      });
      const { code, stderr } = await agent.run(['restore', bad]);
      expect(stderr).toContain(said);
      expect(code).toBe(65);
      expect(existsSync(join(agent.home, 'netrc'))).toBe(false);
      await until('its Redis to be gone', () => servers().length === 0 || undefined);
      expect([left(), existsSync(join(agent.home, 'state/redis'))]).toEqual([[], false]);
    }
  });

  it('that is killed anywhere is run again, and leaves nothing', async () => {
    for (const point of ['unpacked', 'reading', 'prepared']) {
      const { code } = await agent.run(['restore', file], { env: { GRYPHUS_CRASH_POINT: `restore.${point}` } });
      expect(code, point).not.toBe(0);
      expect(left(), point).toHaveLength(1);
    }
    await agent.run(['restore', file], { env: { GRYPHUS_CRASH_POINT: 'restore.placed' } });
    await until('its Redis to be gone', () => servers().length === 0 || undefined);
    const again = await agent.run(['restore', file]);
    expect(again.stderr).toContain('There is a queue here already');
    expect((JSON.parse(await agent.ok('q', '--json')) as unknown[]).length).toBe(3);
    await agent.ok('down');
    rmSync(join(agent.home, 'state'), { recursive: true });
    expect(await agent.ok('restore', file)).toContain('is as it was');
    expect(left()).toEqual([]);
  });
});
