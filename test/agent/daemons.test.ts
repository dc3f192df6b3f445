import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Gryphus as Client } from '../../src/index.ts';
import { readPid } from '../../src/util/pid-file.ts';
import { type AskingServer, startAskingServer } from '../sites/ssh-asking-server.ts';
import { makeKey, publicKeyOf } from '../sites/ssh-keys.ts';
import { TestAgent, until } from './agent.ts';
import { kill, processesOf } from './kill.ts';

interface Status {
  readonly running: boolean;
  readonly pid?: number;
  readonly redis: string;
  readonly managers: readonly { readonly pid: number }[];
}

const statusOf = async (agent: TestAgent) => JSON.parse((await agent.run(['status', '--json'])).stdout) as Status;
const built = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'index.js');
const schedulers = (agent: TestAgent) => processesOf('scheduler/main.js', agent);

describe('the daemons', () => {
  const agent = new TestAgent();
  afterAll(() => agent.end());

  it('are there once, however many commands start them at the same time', async () => {
    const together = async () => {
      const ran = await Promise.all(Array.from({ length: 8 }, () => agent.run(['q'])));
      expect(ran.map(({ code, stderr }) => ({ code, stderr }))).toEqual(ran.map(() => ({ code: 0, stderr: '' })));
      const there = schedulers(agent);
      expect(there).toHaveLength(1);
      expect((await statusOf(agent)).pid).toBe(there[0]);
    };
    await together();
    // Only one process takes over the entry of a killed one.
    for (const pid of schedulers(agent)) kill(pid);
    await together();
    await agent.ok('down');
    expect(schedulers(agent)).toEqual([]);
  }, 120_000);

  it('are started again by the command whose Scheduler is killed while it starts', async () => {
    await agent.ok('down');
    const asked = agent.run(['q']);
    const starting = await until('a Scheduler', () => schedulers(agent)[0]);
    kill(starting);
    expect(await asked).toMatchObject({ code: 0, stderr: '' });
    expect(schedulers(agent)).not.toContain(starting);
    expect((await statusOf(agent)).running).toBe(true);
  }, 60_000);

  it.each(['the Scheduler', 'all of them'])(
    'are started again by a command that waits, when %s is killed and no other command comes',
    async (which) => {
      const begun = join(agent.work, 'begun');
      rmSync(begun, { force: true });
      agent.file('waits.sub', `executable = /bin/sh\narguments = "-c ': >${begun}; sleep 2'"\nqueue\n`);
      const waiting = agent.run(['submit', 'waits.sub', '--wait']);
      await until('the job to run', () => existsSync(begun) || undefined);
      const victims = ['scheduler/main.js', 'gridmanager/main.js', 'central-manager-main.js', 'redis-server'];
      const killed = victims.slice(0, which === 'all of them' ? undefined : 1);
      for (const pid of killed.flatMap((name) => processesOf(name, agent))) kill(pid);
      expect(await waiting).toMatchObject({ code: 0, stderr: '' });
      expect(schedulers(agent)).toHaveLength(1);
    },
    120_000,
  );

  it('stay down for a program that waits, when they were ended in order', async () => {
    const { Gryphus } = (await import(built)) as { Gryphus: typeof Client };
    const gryphus = await Gryphus.open({ home: agent.home });
    try {
      const { cluster } = await gryphus.submit({ text: 'executable = /bin/true\nhold = true\nqueue' });
      const waiting = gryphus.wait({ clusters: [cluster], timeoutMs: 6000 });
      await agent.ok('down');
      expect(await waiting).toBe(false);
      expect(schedulers(agent)).toEqual([]);
    } finally {
      await gryphus.close();
    }
  }, 60_000);

  it('refuse a second Scheduler, and the first stays', async () => {
    await agent.ok('up');
    const main = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'scheduler/main.js');
    const second = () => execFileSync(process.execPath, [main], { env: agent.env, stdio: 'pipe', encoding: 'utf8' });
    expect(second).toThrow(
      expect.objectContaining({ status: 75, stderr: expect.stringContaining('is already running') }),
    );
    expect((await statusOf(agent)).running).toBe(true);
  }, 60_000);

  it('are seen and ended while their Redis hangs', async () => {
    await agent.ok('up');
    const redis = readPid(join(agent.home, 'state/redis/redis.pid'));
    if (redis === undefined) throw new Error('Redis has no pid');
    process.kill(redis, 'SIGSTOP');
    expect(await statusOf(agent)).toMatchObject({ running: true, redis: 'silent' });
    const { code, stderr } = await agent.run(['q']);
    expect(code).toBe(69);
    expect(stderr).toContain('`gryphus down` stops it');
    await agent.ok('down');
    expect(schedulers(agent)).toEqual([]);
    expect(await statusOf(agent)).toMatchObject({ running: false, redis: 'down' });
  }, 90_000);
});

describe('a log-in', () => {
  let agent: TestAgent;
  let server: AskingServer;
  beforeAll(async () => {
    agent = new TestAgent();
    const hostKey = makeKey(agent.dir, 'host');
    server = await startAskingServer(hostKey);
    const known = join(agent.dir, 'known_hosts');
    writeFileSync(known, `[127.0.0.1]:${server.port} ${publicKeyOf(hostKey)}\n`);
    execFileSync('mkdir', ['-p', join(agent.dir, 'home/.ssh')]);
    writeFileSync(
      join(agent.dir, 'home/.ssh/config'),
      `Host asking\nHostName 127.0.0.1\nPort ${server.port}\nUserKnownHostsFile ${known}\n`,
    );
    agent.site('asking', {
      url: 'asking',
      batch: 'fork',
      more: `scratch = ${JSON.stringify(join(agent.dir, 'there'))}\n`,
    });
  });
  afterAll(async () => {
    await agent.end();
    await server.stop();
  });

  it('needs no job, and outlives a Scheduler that is killed', async () => {
    const managers = async () => (await statusOf(agent)).managers.map(({ pid }) => pid);
    await agent.ok('up');
    expect(await managers()).toEqual([]);
    await login(agent, 'asking', (text) => (/code/i.test(text) ? `code-${server.asked()}` : 'secret'));
    expect(server.asked()).toBe(1);
    const before = await managers();
    expect(before).toHaveLength(1);

    for (const pid of schedulers(agent)) kill(pid);
    await agent.ok('up');
    const cluster = await agent.submit(
      'universe = grid\ngrid_resource = batch fork asking\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n',
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(await managers()).toEqual(before);
    expect(server.asked()).toBe(1);

    // It hangs: another takes its place, and processes of other programs are not touched.
    agent.config('[gridmanager]\nhung_after = "10s"\n');
    const [hung = 0] = before;
    const [scheduler] = schedulers(agent);
    process.kill(hung, 'SIGSTOP');
    const next = await agent.submit(
      'universe = grid\ngrid_resource = batch fork local\nexecutable = /bin/true\ntransfer_executable = false\nqueue\n',
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '120', String(next));
    expect(processesOf('gridmanager/main.js', agent)).not.toContain(hung);
    expect(schedulers(agent)).toEqual([scheduler]);
    expect(agent.log('scheduler.log')).toContain('no heartbeat');
    // An adopted process is stopped with the others.
    for (const pid of schedulers(agent)) kill(pid);
    await agent.ok('up');
    await agent.ok('down');
    await until(
      'the GridManager to be gone',
      () => processesOf('gridmanager/main.js', agent).length === 0 || undefined,
    );
  }, 240_000);

  it('ends when the server closes the connection while it asks', async () => {
    await agent.ok('up');
    const { Gryphus } = (await import(built)) as { Gryphus: typeof Client };
    const gryphus = await Gryphus.open({ home: agent.home });
    const asked: boolean[] = [];
    const never = (_: unknown, signal?: AbortSignal) =>
      new Promise<undefined>(() => {
        signal?.addEventListener('abort', () => asked.push(true));
        server.cut();
      });
    await expect(gryphus.login('asking', never)).rejects.toMatchObject({ code: 'site-unreachable' });
    expect(asked).toEqual([true]);
    await gryphus.close();
  }, 60_000);
});

/** As `gryphus site login` in a terminal. */
async function login(agent: TestAgent, site: string, answer: (question: string) => string): Promise<void> {
  const { Gryphus } = (await import(built)) as { Gryphus: typeof Client };
  const gryphus = await Gryphus.open({ home: agent.home });
  try {
    await gryphus.login(site, async ({ text }) => answer(text));
  } finally {
    await gryphus.close();
  }
}
