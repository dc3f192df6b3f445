import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openQueue } from '../../src/queue/api.ts';
import { unfitness } from '../../src/queue/redis-fit.ts';
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
