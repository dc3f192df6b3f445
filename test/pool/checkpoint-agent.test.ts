import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';
import { quickPool } from './quick-pool.ts';

const HELPER = join(
  import.meta.dirname,
  '../..',
  process.env['GRYPHUS_DIST'] ?? 'dist',
  `native/${process.arch}/gryphus-helper`,
);

/** A shell that counts with a child each time, and does not know that it is moved; the ledger tells what it did. */
const COUNTER = `#!/bin/sh
echo start >>"$1"
n=0
while [ $n -lt 1000000 ] && [ ! -e "$1.over" ]; do n=$((n + 1)); echo $n; echo $n >state; echo $n >"$1.at"; sleep 0.02; done
echo "ended at $n"
cp state result
exit 3
`;

describe.skipIf(!existsSync(HELPER))('want_checkpoint in the pool', () => {
  const agent = quickPool(COUNTER);

  async function counter(
    name: string,
    more = '',
    program = 'counter.sh',
  ): Promise<{ cluster: number; ledger: string; name: string }> {
    const ledger = join(agent.work, `${name}.ledger`);
    const cluster = await agent.submit(
      `executable = ${program}\narguments = ${ledger}\nwant_checkpoint = true\n${more}output = ${name}.out\nlog = ${name}.log\n` +
        `transfer_output_files = result\ntransfer_output_remaps = "result = ${name}.result"\nqueue\n`,
    );
    return { cluster, ledger, name };
  }
  const at = (ledger: string) => (existsSync(`${ledger}.at`) ? Number(readFileSync(`${ledger}.at`, 'utf8')) : 0);
  const reached = (ledger: string, n: number) =>
    until(`count ${n}`, () => (at(ledger) >= n ? at(ledger) : undefined)).catch((thrown: unknown) => {
      throw new Error(`${agent.log('pool.log').slice(-1500)}\n${agent.log('pool-worker.log').slice(-1500)}`, {
        cause: thrown,
      });
    });
  const evictions = (name: string) =>
    existsSync(join(agent.work, `${name}.log`))
      ? parseUserLog(agent.read(`${name}.log`)).events.filter((e) => e.type === 'evicted')
      : [];

  /** It started once, and its output is what an undisturbed run writes. */
  async function finish({ cluster, ledger, name }: { cluster: number; ledger: string; name: string }): Promise<void> {
    agent.file(`${name}.ledger.over`, '');
    await agent.run(['wait', '--no-outcome', '--timeout', '60', String(cluster)]);
    const last = at(ledger);
    const lines = Array.from({ length: last }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read(`${name}.out`)).toBe(`${lines}ended at ${last}\n`);
    expect(agent.read(`${name}.result`)).toBe(`${last}\n`);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ ExitCode: 3, NumJobCompletions: 1 });
  }

  it('goes on where it was after each vacate, with its output exactly once', async () => {
    const job = await counter('vacated');
    for (let times = 1; times <= 3; times++) {
      await reached(job.ledger, at(job.ledger) + 20);
      await agent.ok('vacate', String(job.cluster));
      await until(`eviction ${times}`, () => evictions(job.name).length === times || undefined);
    }
    await reached(job.ledger, at(job.ledger) + 20);
    await finish(job);
    expect(readFileSync(job.ledger, 'utf8')).toBe('start\n');
    expect(evictions(job.name).every((event) => event.checkpointed === 1)).toBe(true);
    expect(agent.read(`${job.name}.log`)).toContain('\n\t(1) Job was checkpointed.\n');
    const [ad] = await agent.ads(job.cluster);
    expect(ad).toMatchObject({ NumCkpts: 3, NumJobStarts: 4 });
    expect(String(ad?.['LastCheckpointPlatform'])).toContain('vdso-');
  }, 120_000);

  it('is checkpointed when its user asks, goes on, and says so in its log', async () => {
    const job = await counter('asked');
    await reached(job.ledger, 10);
    const said = await agent.ok('checkpoint', String(job.cluster));
    expect(said).toContain('asked to checkpoint');
    const events = () => parseUserLog(agent.read('asked.log')).events.filter((e) => e.type === 'checkpointed');
    await until('event 003', () => events().length === 1 || undefined);
    expect(agent.read('asked.log')).toMatch(
      /^003 .* Job was checkpointed\.\n\tUsr 0 00:00:\d\d, Sys 0 00:00:\d\d {2}- {2}Run Remote Usage\n/m,
    );
    expect((await agent.ads(job.cluster))[0]).toMatchObject({ NumCkpts: 1, NumJobStarts: 1 });
    await reached(job.ledger, at(job.ledger) + 5);
    // It stays still from the suspension to its end, and goes on elsewhere.
    await agent.ok('suspend', String(job.cluster));
    await until('its suspension', async () => (await agent.ads(job.cluster))[0]?.['JobStatus'] === 7 || undefined);
    expect(await agent.ok('why', String(job.cluster))).toMatch(
      /: It is suspended, .*\n *Suspended by its user \(gryphus suspend\)\.\n *→ gryphus continue \d+\.0\n/,
    );
    const still = at(job.ledger);
    await agent.ok('vacate', String(job.cluster));
    await until('its eviction', () => evictions(job.name).length === 1 || undefined);
    expect(evictions(job.name)[0]?.checkpointed).toBe(1);
    await reached(job.ledger, still + 5);
    await finish(job);
    expect(readFileSync(job.ledger, 'utf8')).toBe('start\n');
    const { code, stderr } = await agent.run(['checkpoint', String(job.cluster)]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/\d/);
  }, 120_000);

  it.runIf(SLOW)(
    'is checkpointed again and again by its own PeriodicCheckpoint, and goes on',
    async () => {
      const job = await counter('periodic', '+PeriodicCheckpoint = TARGET.LastCkpt > 5\n');
      const events = () =>
        existsSync(join(agent.work, 'periodic.log'))
          ? parseUserLog(agent.read('periodic.log')).events.filter((e) => e.type === 'checkpointed')
          : [];
      await until('two periodic checkpoints', () => events().length >= 2 || undefined, 120_000);
      await finish(job);
      const [ad] = await agent.ads(job.cluster);
      expect(ad).toMatchObject({ NumCkpts: events().length, NumJobStarts: 1 });
    },
    180_000,
  );

  it('takes nothing from a job that has something else where its image goes', async () => {
    const elsewhere = join(agent.work, 'elsewhere');
    mkdirSync(elsewhere);
    agent.file('plants.sh', COUNTER.replace('n=0', `n=0; ln -s '${elsewhere}' .job.checkpoint`), 0o755);
    const job = await counter('planted', '', 'plants.sh');
    await reached(job.ledger, 10);
    await agent.ok('vacate', String(job.cluster));
    await until('its eviction', () => evictions(job.name).length === 1 || undefined, 60_000);
    await reached(job.ledger, at(job.ledger) + 10);
    await finish(job);
    expect(readdirSync(elsewhere)).toEqual([]);
  }, 180_000);

  it('is checkpointed before its machine is drained, and goes on when it is back', async () => {
    const job = await counter('drained');
    await reached(job.ledger, 10);
    await agent.ok('pool', 'off', '--graceful');
    await until('its eviction', () => evictions(job.name).length === 1 || undefined, 60_000);
    expect(evictions(job.name)[0]?.checkpointed).toBe(1);
    const still = at(job.ledger);
    await agent.ok('pool', 'on');
    await reached(job.ledger, still + 10);
    await finish(job);
    expect(readFileSync(job.ledger, 'utf8')).toBe('start\n');
  }, 180_000);

  it.runIf(SLOW)(
    'is right from its last whole checkpoint when its worker is killed while it is written',
    async () => {
      const job = await counter('killed');
      for (let times = 1; times <= 3; times++) {
        await reached(job.ledger, at(job.ledger) + 10);
        await until(
          'it to be vacated',
          async () => (await agent.run(['vacate', String(job.cluster)])).code === 0 || undefined,
        );
        killMatching('worker.mjs', agent);
        await agent.ok('up');
        await until(`eviction ${times}`, () => evictions(job.name).length >= times || undefined);
      }
      // Without a checkpoint it may have started again, and its output with it.
      await reached(job.ledger, 5);
      await finish(job);
    },
    300_000,
  );

  it('goes on as before when it cannot be checkpointed, and says why', async () => {
    const up = join(agent.work, 'up');
    const program = agent.file(
      'opens.py',
      `import socket, time\ns = socket.socket()\nopen('${up}', 'w').close()\ntime.sleep(1000)\n`,
    );
    const cluster = await agent.submit(
      `executable = /usr/bin/python3\ntransfer_executable = false\narguments = ${program}\nwant_checkpoint = true\nlog = s.log\nqueue\n`,
    );
    await until('it to run', () => existsSync(up) || undefined);
    await agent.ok('vacate', String(cluster));
    await until('its eviction', () => evictions('s').length === 1 || undefined);
    expect(agent.read('s.log')).toMatch(/not checkpointed: file descriptor \d+ is a socket/);
    expect(agent.read('s.log')).toContain('\t(0) CPU times\n');
    await agent.ok('rm', String(cluster));
  }, 120_000);

  it('goes on from the checkpoint before when a later one cannot be made, without doubled output', async () => {
    const base = join(agent.work, 'later');
    agent.file(
      'later.py',
      `import os, signal, socket, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
n = 0
s = None
while not os.path.exists('${base}.ledger.over'):
    n += 1
    print(n, flush=True)
    s = (s or socket.socket()) if os.path.exists('${base}.flag') else None
    with open('${base}.now', 'w') as f: f.write(f'{n} {s is not None}')
    os.rename('${base}.now', '${base}.at')
    time.sleep(0.02)
print('ended at', n)
`,
    );
    const cluster = await agent.submit(
      `executable = /usr/bin/python3\ntransfer_executable = false\narguments = ${join(agent.work, 'later.py')}\nwant_checkpoint = true\noutput = later.out\nlog = later.log\nqueue\n`,
    );
    const words = () => (existsSync(`${base}.at`) ? readFileSync(`${base}.at`, 'utf8').split(' ') : ['0', '']);
    const beyond = (n: number) => until(`count ${n}`, () => Number(words()[0]) > n || undefined);
    await beyond(20);
    await agent.ok('vacate', String(cluster));
    await until('its checkpoint', () => evictions('later').length === 1 || undefined);
    await beyond(Number(words()[0]) + 10);
    agent.file('later.flag', '');
    await until('its socket', () => words()[1] === 'True' || undefined);
    const before = Number(words()[0]);
    await agent.ok('vacate', String(cluster));
    await until('its eviction', () => evictions('later').length === 2 || undefined);
    expect(evictions('later').map((event) => event.checkpointed)).toEqual([1, undefined]);
    rmSync(`${base}.flag`);
    await until('the earlier checkpoint', () => (words()[1] === 'False' && Number(words()[0]) < before) || undefined);
    agent.file('later.ledger.over', '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const last = Number(words()[0]);
    const lines = Array.from({ length: last }, (_, n) => `${n + 1}\n`).join('');
    expect(agent.read('later.out')).toBe(`${lines}ended at ${last}\n`);
  }, 120_000);

  it.each([
    ['should_transfer_files = NO', 'want_checkpoint and should_transfer_files = NO are incompatible'],
    ['when_to_transfer_output = ON_EXIT_OR_EVICT', 'want_checkpoint and when_to_transfer_output'],
    ['checkpoint_exit_code = 85', 'want_checkpoint and checkpoint_exit_code are incompatible'],
    ['universe = parallel\nmachine_count = 2', 'Parallel jobs cannot be checkpointed by want_checkpoint'],
  ])('is refused beside %s', async (line, message) => {
    const input = `executable = /bin/true\nwant_checkpoint = true\n${line}\nqueue\n`;
    const { code, stderr } = await agent.run(['submit', '-'], { input });
    expect(code).not.toBe(0);
    expect(stderr).toContain(message);
  });
});
