import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { until } from '../agent/agent.ts';
import { CAN_MOUNT, smallDisk } from '../pool/small-disk.ts';
import { StrangerWorker } from './stranger-worker.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) process.stderr.write('Tests of jobs of strangers are left out: they need root.\n');

const ATTACKS = readFileSync(join(import.meta.dirname, 'attacks.sh'), 'utf8');
/** The owner's things. */
const NAME = `owners-${process.pid}`;
/** Allocates so many MB and waits. */
const hold = (mb: number) => `const held = Buffer.alloc(${mb} << 20, 1); setTimeout(() => held, 600_000)`;

describe.runIf(isRoot)('a job of another pool, on a machine whose worker is root', () => {
  let dir = '';
  let home = '';
  let owner: ChildProcess;
  let worker: StrangerWorker;
  const things = ['/tmp', '/var/tmp', '/dev/shm'].map((place) => join(place, NAME));
  const sockets: Server[] = [];

  beforeAll(async () => {
    dir = mkdtempSync('/var/tmp/stranger-');
    chmodSync(dir, 0o755);
    home = join(dir, 'home');
    mkdirSync(home);
    for (const path of [...things, join(home, NAME)]) writeFileSync(path, 'mine');
    for (const path of [`\0${NAME}`, `/run/${NAME}`]) {
      const server = createServer();
      sockets.push(server);
      await new Promise<void>((done) => server.listen(path, done));
    }
    chmodSync(`/run/${NAME}`, 0o777);
    owner = spawn('/bin/sleep', ['600'], { argv0: NAME, env: { NAME } });
    worker = new StrangerWorker(dir, [home]);
  });
  afterAll(() => {
    worker.close();
    owner.kill('SIGKILL');
    for (const server of sockets) server.close();
    for (const path of things) rmSync(path);
    rmSync(dir, { recursive: true, force: true });
  });

  const attacks = (key: string) => ({
    args: ['-c', ATTACKS, 'sh', home, String(owner.pid), NAME, join(worker.place('stranger.0.0.0'), '..')],
    env: { KEY: key },
  });
  const sleepers = (seconds: number) => spawnSync('pgrep', ['-fx', `sleep ${seconds}`], { encoding: 'utf8' }).stdout;

  it('reaches nothing of the owner and of other jobs, and can use its own', async () => {
    worker.start('stranger.1.0.1', 'exec sleep 7261');
    await until('another job', () => sleepers(7261) !== '' || undefined);
    const { how, stdout, stderr } = await worker.run('stranger.2.0.1', ATTACKS, attacks('stranger.2.0.1'));
    expect(stdout).toBe(`${accountOf('nobody')?.uid}\n`);
    expect(stderr).toBe('again\n');
    expect(how).toEqual({ kind: 'exited', code: 0 });
    for (const place of ['/tmp', '/var/tmp', '/dev/shm']) expect(existsSync(join(place, `left-${NAME}`))).toBe(false);
    worker.take({ t: 'cancel', key: 'stranger.1.0.1', how: 'remove', message: 'over' });
    await worker.end('stranger.1.0.1');
  }, 30_000);

  it('is gone with all that it started when its program ends', async () => {
    const script = 'env -i setsid -f sleep 7262; env -i setsid -f sh -c "trap : TERM; sleep 7262"; sleep 0.2';
    const { how } = await worker.run('stranger.3.0.1', script);
    expect(how).toEqual({ kind: 'exited', code: 0 });
    expect(sleepers(7262)).toBe('');
  }, 30_000);

  it('gets the signal that asks it to end, and its own way to end is reported', async () => {
    const script = 'trap "echo asked; exit 7" USR1; echo here; while :; do sleep 0.05; done';
    worker.start('stranger.4.0.1', script, { killSignal: 'SIGUSR1' });
    await until('it to run', () => worker.output('stranger.4.0.1') !== '' || undefined);
    worker.take({ t: 'cancel', key: 'stranger.4.0.1', how: 'vacate', message: 'over' });
    const { how, stdout } = await worker.end('stranger.4.0.1');
    expect(stdout).toBe('here\nasked\n');
    expect(how).toMatchObject({ kind: 'by-site', cause: 'preempted', yielded: true });
    expect((await worker.run('stranger.5.0.1', 'kill -HUP $$')).how).toEqual({ kind: 'signaled', signal: 1 });
    expect((await worker.run('stranger.6.0.1', 'exit 3')).how).toEqual({ kind: 'exited', code: 3 });
  }, 30_000);

  it('has no more memory than its slot, though jobs of the machine’s owner are not limited', async () => {
    const script = `cp ${process.execPath} node; env -i setsid -f ./node -e '${hold(300)}'; exec sleep 600`;
    worker.start('stranger.7.0.1', script, {}, 150);
    expect((await worker.end('stranger.7.0.1')).how).toMatchObject({ kind: 'by-site', cause: 'out-of-memory' });
  }, 30_000);

  it.runIf(CAN_MOUNT)(
    'leaves a twentieth of the disk to the owner',
    async () => {
      const disk = smallDisk(join(dir, 'disk'), 64 << 10);
      chmodSync(disk.dir, 0o755);
      const there = new StrangerWorker(disk.dir, []);
      try {
        there.start('stranger.1.0.1', 'echo here; exec sleep 600');
        await until('it to run', () => there.output('stranger.1.0.1') !== '' || undefined);
        disk.fill(4 << 10);
        expect((await there.run('stranger.2.0.1', 'exit 3')).how).toEqual({ kind: 'exited', code: 3 });
        disk.fill(3 << 10);
        const nearlyFull = 'the disk of its machine is nearly full, and is kept for its owner';
        const { how } = await there.end('stranger.1.0.1');
        expect(how).toMatchObject({ kind: 'by-site', cause: 'preempted', message: nearlyFull });
        await expect(there.run('stranger.3.0.1', 'exit 3')).rejects.toThrow(nearlyFull);
        disk.free();
        expect((await there.run('stranger.4.0.1', 'exit 3')).how).toEqual({ kind: 'exited', code: 3 });
      } finally {
        there.close();
        disk.unmount();
      }
    },
    30_000,
  );

  it('does not start where the owner’s directories cannot be hidden', async () => {
    mkdirSync(join(dir, 'other'));
    const other = new StrangerWorker(join(dir, 'other'), ['/etc/passwd']);
    try {
      const { how } = await other.run('stranger.1.0.1', 'echo started');
      expect(how).toMatchObject({ kind: 'by-site', cause: 'cannot-start' });
      expect(how.kind === 'by-site' && how.message).toMatch(
        /^its surroundings could not be made: mount .*\/etc\/passwd$/m,
      );
    } finally {
      other.close();
    }
  }, 30_000);
});
