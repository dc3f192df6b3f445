import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openQueue } from '../../src/queue/api.ts';
import { unfitness } from '../../src/queue/redis-fit.ts';
import { needRedis } from '../../scripts/other-redis.mjs';
import { SLOW } from '../slow.ts';
import { TestAgent } from './agent.ts';
import { removeTree } from '../remove-tree.ts';
import { until } from '../sites/redis.ts';

let dir: string;
let server: ChildProcess | undefined;
beforeEach(() => {
  dir = mkdtempSync('/tmp/gry-redis-');
});
afterEach(async () => {
  if (server?.exitCode === null) {
    const gone = new Promise((resolve) => server?.once('exit', resolve));
    server.kill('SIGKILL');
    await gone;
  }
  server = undefined;
  await removeTree(dir);
});

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

/** Starts a server with these lines of configuration. */
async function serve(lines: readonly string[], port: number, args: readonly string[] = []): Promise<string> {
  const conf = join(dir, 'redis.conf');
  writeFileSync(conf, [`dir ${dir}`, 'bind 127.0.0.1', 'save ""', ...lines, ''].join('\n'));
  server = spawn('redis-server', [conf, ...args], { stdio: 'ignore' });
  await until(
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => resolve(true));
        socket.once('error', () => resolve(false));
        socket.once('connect', () => socket.destroy());
      }),
    30_000,
  );
  return `redis://127.0.0.1:${port}`;
}

const socketOf = (agent: TestAgent) => readFileSync(join(agent.home, 'state/redis/socket'), 'utf8').trim();
const cliSays = (agent: TestAgent, ...words: string[]) =>
  execFileSync('redis-cli', ['-s', socketOf(agent), ...words], { encoding: 'utf8' });

const open = (url: string) => openQueue({ stateDir: dir, url, start: 'if-needed' });

describe('a Redis of the user', () => {
  it.each([
    [
      'redis_version:7.0.15\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction',
      undefined,
    ],
    ['redis_version:6.0.16\r\nredis_mode:standalone\r\nrole:master', undefined],
    [
      'redis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:standalone\r\nvalkey_version:8.1.1\r\nrole:master',
      undefined,
    ],
    ['redis_version:7.2.4\r\nserver_mode:cluster\r\nvalkey_version:8.1.1', 'a node of a Redis Cluster'],
    ['redis_version:5.0.14\r\nredis_mode:standalone', '6 is the oldest'],
    ['redis_version:7.0.0\r\nredis_mode:standalone\r\nrole:slave', 'a replica'],
    ['redis_version:7.0.0\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru', 'deletes keys'],
    ['redis_version:7.0.0\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru', undefined],
  ])('that says %j', (info, why) => {
    if (why === undefined) expect(unfitness(info)).toBeUndefined();
    else expect(unfitness(info)?.why).toContain(why);
  });

  it('that is a node of a Cluster, a Sentinel or a cache is refused with the reason, and nothing is written there', async () => {
    const kinds: readonly (readonly [string, (port: number) => Promise<string>])[] = [
      ['it is a node of a Redis Cluster', (port) => serve([`port ${port}`, 'cluster-enabled yes'], port)],
      ['it is a Sentinel', (port) => serve([`port ${port}`], port, ['--sentinel'])],
      ['it deletes keys', (port) => serve([`port ${port}`, 'maxmemory 100mb', 'maxmemory-policy allkeys-lru'], port)],
    ];
    for (const [why, start] of kinds) {
      const url = await start(await freePort());
      await expect(open(url), why).rejects.toMatchObject({ code: 'bad-config', message: expect.stringContaining(why) });
      server?.kill('SIGKILL');
    }
    expect(existsSync(join(dir, 'dump.rdb'))).toBe(false);
  }, 60_000);

  it('works over TLS with a password, which stands in no log and on no command line', async () => {
    const word = 'pass-4711-word';
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'ignore' });
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    openssl(
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '2',
      '-keyout',
      'key',
      '-out',
      'cert',
      ...subject,
    );
    const port = await freePort();
    const tls = ['tls-cert-file cert', 'tls-key-file key', 'tls-ca-cert-file cert', 'tls-auth-clients no'];
    await serve(['port 0', `tls-port ${port}`, `requirepass ${word}`, 'appendonly yes', ...tls], port);
    const agent = new TestAgent({
      REDIS_URL: `rediss://:${word}@127.0.0.1:${port}`,
      NODE_EXTRA_CA_CERTS: join(dir, 'cert'),
    });
    try {
      expect(await agent.ok('run', '--', 'echo', 'over TLS')).toBe('over TLS\n');
      expect(existsSync(join(agent.home, 'state/redis/appendonlydir'))).toBe(false);
      for (const name of readdirSync(join(agent.home, 'state/log')))
        expect(readFileSync(join(agent.home, 'state/log', name), 'utf8')).not.toContain(word);
      const wrong = await agent.run(['q'], { env: { REDIS_URL: `rediss://:other@127.0.0.1:${port}` } });
      expect(wrong.stderr).toContain('is not available');
      expect(wrong.stderr).not.toContain('other@');
      expect(wrong.code).toBe(69);
    } finally {
      await agent.end();
    }
  }, 120_000);
});

it('a queue in the form of Redis 7 is not opened by a Redis 6, which would begin an empty one', async () => {
  const older = join(dir, 'redis-server');
  writeFileSync(
    older,
    `#!/bin/sh\n[ "$1" != --version ] || exec echo 'Redis server v=6.2.21 sha=0'\necho >'${dir}/started'\n`,
  );
  chmodSync(older, 0o755);
  mkdirSync(join(dir, 'redis/appendonlydir'), { recursive: true });
  await expect(openQueue({ stateDir: dir, server: older, start: 'if-needed' })).rejects.toThrow(
    `The queue in ${dir}/redis was written by a later Redis or Valkey than the one here (${older} is version 6.2.21).`,
  );
  expect(existsSync(join(dir, 'started'))).toBe(false);
});

/** A queue that is written and read by one server after another, as after upgrades of the system. */
describe.skipIf(!SLOW)('a private Redis of another version', () => {
  const kinds = (['redis-6', 'redis-8', 'valkey-8'] as const).flatMap((kind) => {
    const server = needRedis(kind);
    return server === undefined ? [] : [[kind, server] as const];
  });
  let agent: TestAgent;
  beforeEach(() => {
    agent = new TestAgent();
  });
  afterEach(() => agent.end());

  const use = (path: string | undefined) => {
    agent.env['GRYPHUS_REDIS_SERVER'] = path;
  };
  const HELD = 'executable = /bin/true\ntransfer_executable = false\nhold = true\nqueue\n';
  const contents = (state: string) =>
    readdirSync(state, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), 'latin1')]);

  it.each(kinds)(
    '%s runs jobs, keeps the queue through a kill, and makes a backup that it reads',
    async (_, path) => {
      use(path);
      const held = await agent.submit(HELD);
      expect(await agent.ok('run', '--', 'echo', 'on it')).toBe('on it\n');
      const [pid] = /(?<=process_id:)\d+/.exec(cliSays(agent, 'info', 'server')) ?? [];
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain(dirname(path));
      process.kill(Number(pid), 'SIGKILL');
      expect((await agent.ads(held))[0]).toMatchObject({ JobStatus: 5 });
      await agent.ok('backup', join(agent.dir, 'backup'));
      await agent.ok('down');
      renameSync(join(agent.home, 'state'), join(agent.home, 'state.old'));
      await agent.ok('restore', join(agent.dir, 'backup'));
      expect((await agent.ads(held))[0]).toMatchObject({ JobStatus: 5 });
      expect(await agent.ok('run', '--', 'echo', 'again')).toBe('again\n');
    },
    240_000,
  );

  it.each(kinds)(
    "%s and this machine's: the later one reads the queue of the other, and an earlier one is refused before anything is touched",
    async (kind, path) => {
      const [earlier, later] = kind === 'redis-6' ? [path, undefined] : [undefined, path];
      use(earlier);
      expect(await agent.submit(HELD)).toBe(1);
      await agent.ok('down');
      use(later);
      expect(await agent.submit(HELD)).toBe(2);
      // As it does by itself when its file has doubled: from then on it is of its own version.
      cliSays(agent, 'bgrewriteaof');
      await until(() => !cliSays(agent, 'info', 'persistence').includes('aof_rewrite_in_progress:1'), 30_000);
      await agent.ok('backup', join(agent.dir, 'backup'));
      await agent.ok('down');
      use(earlier);
      const before = contents(join(agent.home, 'state/redis/appendonlydir'));
      for (const words of [['q'], ['up'], ['submit', 'job.sub']]) {
        const { code, stderr } = await agent.run(words);
        expect(stderr).toContain('was written by a later Redis or Valkey than');
        expect(stderr).toContain('GRYPHUS_REDIS_SERVER=PATH');
        expect(code).toBe(69);
      }
      expect(contents(join(agent.home, 'state/redis/appendonlydir'))).toEqual(before);
      const restored = { GRYPHUS_HOME: join(agent.dir, 'restored') };
      const refused = await agent.run(['restore', join(agent.dir, 'backup')], { env: restored });
      expect(refused.stderr).toContain('later Redis');
      expect(existsSync(join(agent.dir, 'restored/state/redis'))).toBe(false);
      use(later);
      expect((await agent.ads(2))[0]).toMatchObject({ JobStatus: 5 });
    },
    240_000,
  );
});
