import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { accountOf } from '../../src/pool/host/accounts.ts';
import { until } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';
import { SlowLink } from './slow-link.ts';
import { UsersPool } from './users-pool.ts';

const isRoot = process.getuid?.() === 0;
const canRun = isRoot && ['newuidmap', 'unshare', 'useradd'].every((name) => spawnSync('which', [name]).status === 0);
if (SLOW && !canRun)
  process.stderr.write('Tests of a flock of three users are left out: they need root and newuidmap.\n');

/** A delay of 30 ms, as between two countries. */
const DELAY_MS = 30;
/** A busy machine takes its time to start three agents; a partner may be left alone for a minute or two. */
const WAIT_MS = 240_000;

describe.runIf(SLOW && canRun)('three pools of three Unix users', () => {
  let dir = '';
  let pools: readonly UsersPool[] = [];
  let link: SlowLink;
  let counts = '';

  beforeAll(async () => {
    // A stranger's /tmp and /var/tmp are its own, and each start is to be seen.
    dir = mkdtempSync('/opt/flock-');
    chmodSync(dir, 0o755);
    counts = join(dir, 'starts');
    writeFileSync(counts, '');
    chmodSync(counts, 0o666);
    const base = 20_000 + (process.pid % 20_000);
    pools = ['a', 'b', 'c'].map((name, i) => new UsersPool(`flk${process.pid % 100_000}${name}`, dir, base + i));
    const [a, b, c] = pools as [UsersPool, UsersPool, UsersPool];
    link = await SlowLink.open(b.port, DELAY_MS);
    a.ok('config', 'pool.cpus', '1');
    for (const [lender, name, port] of [
      [b, 'b', link.port],
      [c, 'c', c.port],
    ] as const) {
      lender.ok('config', 'pool.cpus', '2');
      lender.ok('config', 'flock.listen', `127.0.0.1:${lender.port}`);
      lender.ok('flock', 'add', 'a', '--from', '--new-key', 'a.key');
      a.file(`${name}.key`, readFileSync(join(lender.work, 'a.key'), 'utf8'), 0o600);
      a.ok('flock', 'add', name, '--to', '--url', `127.0.0.1:${port}`, '--key', `${name}.key`);
    }
    for (const pool of pools) pool.ok('up');
    await until('both partners to offer their machines', () => offers(a) === 4 || undefined, WAIT_MS);
  }, 400_000);

  afterAll(() => {
    link?.close();
    for (const pool of pools) pool.end();
    rmSync(dir, { recursive: true, force: true });
  }, 120_000);

  const offers = (pool: UsersPool): number =>
    (JSON.parse(pool.ok('flock', 'list', '--json')) as { status?: { offered: number } }[]).reduce(
      (sum, { status }) => sum + (status?.offered ?? 0),
      0,
    );

  it('run jobs of one of them as strangers, each attempt once, although everything dies meanwhile', async () => {
    const [a, b, c] = pools as [UsersPool, UsersPool, UsersPool];
    a.file(
      'job.sh',
      [
        '#!/bin/sh',
        `echo "$GRYPHUS_KEY $(id -u)" >>${counts}`,
        'cat in.txt',
        `ls ${b.work} ${c.work} ${b.home} ${c.home} 2>/dev/null`,
        'sleep 4',
        'echo made >out.txt',
      ].join('\n'),
      0o755,
    );
    a.file('in.txt', 'input\n');
    const lines = ['executable = job.sh', 'transfer_input_files = in.txt', 'transfer_output_files = out.txt'];
    const more = ['output = o.$(Process)', 'transfer_output_remaps = "out.txt=out.$(Process)"', 'queue 24'];
    a.file('jobs.sub', [...lines, ...more, ''].join('\n'));
    a.ok('submit', 'jobs.sub');
    const kills = [
      () => b.kill('flock/gateway.pid'),
      () => a.kill('flock/gateway.pid'),
      () => c.kill('pool/central-manager.pid'),
      () => link.cut(3000),
      () => b.kill('pool/worker/worker.pid'),
      () => a.kill('pool/central-manager.pid'),
      () => c.kill('flock/gateway.pid'),
      () => c.kill('pool/worker/worker.pid'),
    ];
    const done = () =>
      Array.from({ length: 24 }, (_, i) => existsSync(join(a.work, `out.${i}`))).filter(Boolean).length;
    for (let turn = 0; done() < 24; turn++) {
      if (turn > 240)
        throw new Error(`only ${done()} of 24 ended: ${a.ok('q', '--nobatch')} ${a.ok('flock', 'show', 'b')}`);
      kills[turn % 2 === 0 ? turn / 2 : -1]?.();
      await new Promise((resume) => setTimeout(resume, 2000));
    }
    const starts = readFileSync(counts, 'utf8').trim().split('\n');
    const keys = starts.map((line) => line.split(' ')[0]);
    expect(new Set(keys).size).toBe(keys.length);
    const home = accountOf(a.user)?.uid;
    const users = new Set(starts.map((line) => Number(line.split(' ')[1])));
    expect([...users].some((uid) => uid !== home)).toBe(true);
    for (let i = 0; i < 24; i++) {
      expect(readFileSync(join(a.work, `o.${i}`), 'utf8')).toBe('input\n');
      expect(readFileSync(join(a.work, `out.${i}`), 'utf8')).toBe('made\n');
    }
  }, 600_000);

  it('give a machine back to its owner, whose job starts, and end an agreement at once', async () => {
    const [a, b] = pools as [UsersPool, UsersPool, UsersPool];
    await until('machines to be offered again', () => offers(a) === 4 || undefined, WAIT_MS);
    a.file(
      'long.sub',
      'executable = /bin/sleep\ntransfer_executable = false\narguments = 600\nlog = long.log\nqueue 5\n',
    );
    a.ok('submit', 'long.sub');
    const lent = () => JSON.parse(b.ok('flock', 'show', 'a', '--json')).status?.lent as number;
    await until('both machines to be lent', () => lent() === 2 || undefined, WAIT_MS);
    b.file('own.sub', 'executable = /bin/true\ntransfer_executable = false\nlog = own.log\nqueue\n');
    b.ok('submit', 'own.sub');
    await until('its own job to end', () => b.read('own.log').includes('\n005 (') || undefined, WAIT_MS);
    const evictions = () => a.read('long.log').split('\n004 (').length - 1;
    const before = evictions();
    const running = lent();
    b.ok('flock', 'rm', 'a');
    const isCut = () => {
      const [view] = JSON.parse(a.ok('flock', 'list', '--json')) as { status?: { connected: boolean } }[];
      return view?.status?.connected === false || undefined;
    };
    await until('the link to be cut', isCut, WAIT_MS);
    const isFree = () => (b.ok('status', '--pool', '--json').includes('nice-user') ? undefined : true);
    await until('nothing to run there any more', isFree, WAIT_MS);
    // The other side was told so: it does not wait until the lease of the jobs is over.
    await until('the borrower to learn that', () => evictions() === before + running || undefined, WAIT_MS);
    a.ok('rm', '--all');
  }, 600_000);
});
