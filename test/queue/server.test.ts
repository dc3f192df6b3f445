import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { formatJobId } from '../../src/job/ids.ts';
import { STATE_VERSION } from '../../src/util/state-version.ts';
import { openQueue, type Queue, stopRedis } from '../../src/queue/api.ts';
import { ordinaryUser } from '../sites/ordinary-user.ts';
import { startRedis, type TestRedis, until } from '../sites/redis.ts';
import { procs } from './all.ts';

let redis: TestRedis | undefined;
afterEach(async () => {
  await redis?.stop();
  redis = undefined;
});

const count = async (queue: Queue) => (await queue.totals()).jobs;

describe('the private Redis', () => {
  it.skipIf(ordinaryUser() === undefined)("says nothing to a server in another user's directory", async () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'gst-'));
    const socketDir = join(stateDir, 'run');
    for (const dir of ['redis', 'run']) mkdirSync(join(stateDir, dir), { mode: 0o700 });
    const socket = join(socketDir, 'redis.sock');
    writeFileSync(join(stateDir, 'redis/socket'), `${socket}\n`);
    let heard = '';
    const other = createServer((visitor) => visitor.on('data', (bytes) => (heard += bytes.toString())));
    await new Promise<void>((open) => other.listen(socket, open));
    chownSync(socketDir, ordinaryUser()?.uid ?? 0, 0);
    expect(await stopRedis({ stateDir, socketDir })).toBe(false);
    expect(heard).toBe('');
    await new Promise((closed) => other.close(closed));
    rmSync(stateDir, { recursive: true });
  });

  it('is closed to others, and does not listen on a port', async () => {
    redis = await startRedis();
    expect(statSync(join(redis.socket, '..')).mode & 0o777).toBe(0o700);
    expect(statSync(redis.socket).mode & 0o077).toBe(0);
    const raw = new Redis(redis.socket);
    const said = await raw.config('GET', 'port', 'appendonly', 'appendfsync', 'maxmemory-policy');
    expect(Object.fromEntries(said.flatMap((name, i) => (i % 2 ? [] : [[name, said[i + 1]]])))).toEqual({
      port: '0',
      appendonly: 'yes',
      appendfsync: 'always',
      'maxmemory-policy': 'noeviction',
    });
    raw.disconnect();
  });

  it.each(['never', 'await'] as const)(
    'is waited for if it is slow to answer, as beside a busy disk (%s)',
    async (start) => {
      redis = await startRedis();
      await redis.open();
      process.kill(redis.pid(), 'SIGSTOP');
      const opened = redis.open({ start, patienceMs: 50 });
      try {
        expect(await Promise.race([opened, sleep(2500, 'waits')])).toBe('waits');
      } finally {
        process.kill(redis.pid(), 'SIGCONT');
      }
      expect(await count(await opened)).toBe(0);
    },
  );

  it('loses nothing that was acknowledged when it is killed, and is found again', async () => {
    redis = await startRedis();
    const queue = await redis.open({ start: 'keep', patienceMs: 10_000 });
    const { agent } = queue;
    const { cluster } = await queue.submit({ clusterAd: { Owner: '"a"' }, procs: procs(5000) });
    const moved = queue.transition({ id: { cluster, proc: 3 }, event: 'take' });
    await moved;
    await redis.kill();
    expect(await count(queue)).toBe(5000);
    expect((await queue.get([{ cluster, proc: 3 }]))[0]?.state).toBe('preparing');
    expect((await redis.open()).agent).toBe(agent);
  });

  it('shows nothing of a submit in whose middle it was killed', async () => {
    redis = await startRedis();
    const server = redis;
    const queue = await redis.open({ patienceMs: 100 });
    async function* dying() {
      for (const proc of procs(30_000)) {
        if (proc.attrs.Args === '"25000"') await server.kill();
        yield proc;
      }
    }
    await expect(queue.submit({ clusterAd: {}, procs: dying() })).rejects.toMatchObject({ code: 'queue-unavailable' });
    const later = await redis.open();
    expect(await count(later)).toBe(0);
    expect(await later.clusters()).toEqual([]);
    expect(await later.get([{ cluster: 1, proc: 0 }])).toEqual([]);
    expect(await later.transition({ id: { cluster: 1, proc: 0 }, event: 'take' })).toMatchObject({
      why: 'no-such-job',
    });
    // A quarter of an hour later, the next submit removes what was staged.
    const raw = new Redis(redis.socket);
    expect(await raw.exists('gryphus:j:1')).toBe(1);
    const next = await redis.open({ clock: () => Date.now() + 16 * 60_000 });
    await next.submit({ clusterAd: {}, procs: procs(1) });
    expect(await raw.exists('gryphus:j:1', 'gryphus:sg:1')).toBe(0);
    expect(await raw.keys('gryphus:g:1:*')).toEqual([]);
    raw.disconnect();
  });

  it('starts with a torn end of its file', async () => {
    redis = await startRedis();
    const queue = await redis.open();
    await queue.submit({ clusterAd: {}, procs: procs(10) });
    await redis.kill();
    const dir = join(redis.stateDir, 'redis', 'appendonlydir');
    const file = readdirSync(dir).find((name) => name.endsWith('.incr.aof'));
    appendFileSync(join(dir, file ?? ''), '*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$100\r\nhalf');
    expect(await count(await redis.open())).toBe(10);
  });

  it('is one for all who open the directory at once', async () => {
    redis = await startRedis();
    await redis.kill();
    const server = redis;
    const queues = await Promise.all(Array.from({ length: 5 }, () => server.open()));
    expect(new Set(queues.map(({ agent }) => agent)).size).toBe(1);
    const servers = spawnSync('pgrep', ['-f', `redis-server .*${redis.socket}`], { encoding: 'utf8' }).stdout.trim();
    expect(servers).toBe(String(redis.pid()));
  });

  it('is refused a second time even where the first one’s socket is gone', async () => {
    redis = await startRedis();
    rmSync(redis.socket);
    await expect(openQueue({ stateDir: redis.stateDir })).rejects.toMatchObject({
      code: 'queue-unavailable',
      message: expect.stringMatching(/Another Redis holds .*redis\.lock/),
    });
    expect(process.kill(redis.pid(), 0)).toBe(true);
  });

  it('says that it does not run', async () => {
    const stateDir = mkdtempSync('/tmp/gq-');
    const refused = openQueue({ stateDir, start: 'never', patienceMs: 200 });
    await expect(refused).rejects.toMatchObject({ code: 'queue-unavailable', retry: 'later' });
    expect(await stopRedis({ stateDir })).toBe(false);
    rmSync(stateDir, { recursive: true });
  });

  it('is ended where it is not used, and stays while somebody is connected', async () => {
    const stateDir = mkdtempSync('/tmp/gq-');
    const queue = await openQueue({ stateDir });
    expect(await stopRedis({ stateDir, unused: true })).toBe(false);
    expect(await count(queue)).toBe(0);
    await queue.close();
    expect(await stopRedis({ stateDir, unused: true })).toBe(true);
    expect(await stopRedis({ stateDir, unused: true })).toBe(false);
    rmSync(stateDir, { recursive: true });
  });

  it('takes the place of a stale socket', async () => {
    const stateDir = mkdtempSync('/tmp/gq-');
    mkdirSync(join(stateDir, 'run'), { mode: 0o700 });
    const stale = createServer();
    await new Promise<void>((resolve) => {
      stale.listen(join(stateDir, 'run', 'redis.sock'), resolve);
    });
    // As a killed process leaves it: the name remains, but nothing listens.
    spawnSync('mv', [join(stateDir, 'run', 'redis.sock'), join(stateDir, 'run', 'kept')]);
    await new Promise((resolve) => {
      stale.close(resolve);
    });
    spawnSync('mv', [join(stateDir, 'run', 'kept'), join(stateDir, 'run', 'redis.sock')]);
    const queue = await openQueue({ stateDir });
    expect(await count(queue)).toBe(0);
    await queue.close();
    await stopRedis({ stateDir });
    rmSync(stateDir, { recursive: true });
  });

  it('finds a short place for its socket where the state directory’s name is long, or odd', async () => {
    const base = mkdtempSync('/tmp/gq-');
    const stateDir = join(base, `${'x'.repeat(90)} "quoted" 'é\n$(x)`);
    mkdirSync(stateDir, { mode: 0o700 });
    const queue = await openQueue({ stateDir });
    expect(Buffer.byteLength(queue.where)).toBeLessThan(108);
    expect(statSync(join(queue.where, '..')).mode & 0o777).toBe(0o700);
    await queue.close();
    const dir = join(queue.where, '..');
    const again = await openQueue({ stateDir, start: 'never' });
    await again.close();
    expect(await stopRedis({ stateDir })).toBe(true);
    expect(existsSync(queue.where)).toBe(false);
    rmSync(base, { recursive: true });
    rmSync(dir, { recursive: true });
  });

  it('refuses a directory that others can enter', async () => {
    const stateDir = mkdtempSync('/tmp/gq-');
    mkdirSync(join(stateDir, 'run'), { mode: 0o755 });
    await expect(openQueue({ stateDir })).rejects.toMatchObject({ code: 'not-permitted' });
    rmSync(stateDir, { recursive: true });
  });

  it('says which program is missing', async () => {
    const stateDir = mkdtempSync('/tmp/gq-');
    const { PATH } = process.env;
    try {
      process.env['PATH'] = stateDir;
      await expect(openQueue({ stateDir })).rejects.toMatchObject({ code: 'missing-program' });
    } finally {
      process.env['PATH'] = PATH;
    }
    await expect(openQueue({ stateDir, server: '/no/such' })).rejects.toMatchObject({
      code: 'missing-program',
      message: expect.stringContaining('/no/such'),
    });
    rmSync(stateDir, { recursive: true });
  });

  it('refuses the state of a newer version', async () => {
    redis = await startRedis();
    const raw = new Redis(redis.socket);
    await raw.hset('gryphus:meta', 'version', '99');
    raw.disconnect();
    await expect(redis.open()).rejects.toMatchObject({ code: 'state-version' });
  });

  it('takes over the state of an older version, once its daemons have ended', async () => {
    redis = await startRedis();
    const queue = await redis.open();
    const { cluster } = await queue.submit({ clusterAd: {}, procs: procs(2500), site: 'hpc' });
    const ids = [3, 1024, 2499].map((proc) => ({ cluster, proc }));
    await queue.transitionMany(ids.map((id) => ({ id, event: 'hold' })));
    const raw = new Redis(redis.socket);
    const before = await listed(queue);
    for (const key of await raw.keys('gryphus:g:*')) {
      const procs = before[key.endsWith('idle') ? 'idle' : 'held'].map((id) => id.slice(id.indexOf('.') + 1));
      expect(await raw.del(key)).toBe(1);
      await raw.zadd(key, ...procs.flatMap((proc) => [proc, proc]));
    }
    await raw.hset('gryphus:meta', 'version', '1');
    const lease = await queue.acquireLease('scheduler', 60_000);
    await expect(redis.open()).rejects.toMatchObject({ code: 'state-version' });
    if (lease) await queue.releaseLease(lease);
    const fresh = await redis.open();
    expect(await listed(fresh)).toEqual(before);
    expect(await raw.hget('gryphus:meta', 'version')).toBe(String(STATE_VERSION));
    raw.disconnect();
    expect((await fresh.transition({ id: { cluster, proc: 1024 }, event: 'release' })).ok).toBe(true);
    expect((await listed(fresh)).idle).toContain(`${cluster}.1024`);
  });

  it('is left alone where another is named', async () => {
    redis = await startRedis();
    const stateDir = mkdtempSync('/tmp/gq-');
    const queue = await openQueue({ stateDir, url: `unix://${redis.socket}` });
    await queue.submit({ clusterAd: {}, procs: procs(1) });
    await queue.work('x').add('k', 'i', null);
    expect(existsSync(join(stateDir, 'redis'))).toBe(false);
    await queue.close();
    expect(await count(await redis.open())).toBe(1);
    rmSync(stateDir, { recursive: true });
  });
});

it('tells a disk that is full, or a quota that is used up, by the last words of the server', async () => {
  const stateDir = mkdtempSync('/tmp/gq-');
  mkdirSync(join(stateDir, 'redis'), { mode: 0o700 });
  const say = (...lines: string[]) =>
    appendFileSync(
      join(stateDir, 'redis', 'redis.log'),
      lines.map((line) => `11116:M 21 Nov 2026 03:25:52.099 ${line}\n`).join(''),
    );
  const opened = () => openQueue({ stateDir, start: 'never', patienceMs: 50 }).catch((thrown: unknown) => thrown);
  say(
    '# oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo',
    '# Short write while writing to the AOF file: (nwritten=3133440, expected=6000055)',
    "# Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...",
  );
  expect(await opened()).toMatchObject({ code: 'disk-full' });
  say('# oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo', '# Server initialized');
  expect(await opened()).toMatchObject({ code: 'queue-unavailable' });
  rmSync(stateDir, { recursive: true });
});

const mounted =
  spawnSync('sh', ['-c', 'd=$(mktemp -d) && mount -t tmpfs none "$d" && umount "$d" && rmdir "$d"']).status === 0;

describe.runIf(mounted)('on a full disk', () => {
  it('acknowledges nothing, loses nothing, says so, and continues when there is space', async () => {
    const stateDir = mkdtempSync('/tmp/gq-');
    spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,mode=0700', 'none', stateDir]);
    try {
      const queue = await openQueue({ stateDir, start: 'keep', patienceMs: 500 });
      let acknowledged = 0;
      const big = `"${'x'.repeat(1000)}"`;
      const refused = await (async () => {
        for (;;) {
          await queue.submit({ clusterAd: {}, procs: Array.from({ length: 500 }, () => ({ attrs: { Args: big } })) });
          acknowledged += 500;
        }
      })().catch((thrown: unknown) => thrown);
      expect(refused).toMatchObject({ code: 'disk-full', retry: 'later' });
      expect(acknowledged).toBeGreaterThan(0);
      await expect(queue.totals()).rejects.toMatchObject({ code: 'disk-full' });
      spawnSync('mount', ['-o', 'remount,size=64m', stateDir]);
      const after = await openQueue({ stateDir });
      expect(await count(after)).toBe(acknowledged);
      await after.submit({ clusterAd: {}, procs: procs(1) });
      await until(async () => (await queue.totals().catch(() => undefined))?.jobs === acknowledged + 1);
      await queue.close();
      await after.close();
      await stopRedis({ stateDir });
    } finally {
      spawnSync('umount', [stateDir]);
      rmSync(stateDir, { recursive: true, force: true });
    }
  });
});

/** The ids of the idle jobs and of the held ones, as the index has them. */
async function listed(queue: Queue): Promise<{ readonly idle: string[]; readonly held: string[] }> {
  const names = async (state: 'idle' | 'held') =>
    (await queue.nextJobs({ manager: '', site: 'hpc', state, limit: 10_000 })).map(({ id }) => formatJobId(id));
  return { idle: await names('idle'), held: await names('held') };
}
