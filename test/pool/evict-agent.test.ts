import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { some } from '../slow.ts';
import { quickPool } from './quick-pool.ts';

/** Counts in steps of 20 ms up to its argument; when asked to end, saves its count, and prints it. */
const COUNTER = `#!/bin/sh
n=0
[ -e state ] && n=$(cat state)
echo "from $n" >>"$1"
trap 'echo $n >state; echo "saved $n"; exit 0' TERM
while [ $n -lt $2 ] && [ ! -e "$1.over" ]; do n=$((n + 1)); sleep 0.02; done
echo "ended at $n"
echo $n >result
`;

describe('when_to_transfer_output = ON_EXIT_OR_EVICT in the pool', () => {
  const agent = quickPool(COUNTER);
  let jobs = 0;

  /** A job's ledger has a line for each start of its program, with the count at which it started. */
  async function counter(more = '', to = 1_000_000): Promise<{ cluster: number; ledger: string; name: string }> {
    const name = `job${++jobs}`;
    const ledger = join(agent.work, `${name}.ledger`);
    const cluster = await agent.submit(
      `executable = counter.sh\narguments = ${ledger} ${to}\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = ${name}.out\nlog = ${name}.log\ntransfer_output_remaps = "result = ${name}.result"\n${more}queue\n`,
    );
    return { cluster, ledger, name };
  }
  const starts = (ledger: string) =>
    existsSync(ledger)
      ? readFileSync(ledger, 'utf8')
          .trim()
          .split('\n')
          .map((line) => Number(line.split(' ')[1]))
      : [];
  const started = (ledger: string, times: number) =>
    until(`start ${times}`, () => (starts(ledger).length >= times ? starts(ledger) : undefined)).catch(
      async (thrown: unknown) => {
        throw new Error(`${agent.log('pool.log').slice(-1500)}\n${agent.log('pool-worker.log').slice(-1500)}`, {
          cause: thrown,
        });
      },
    );
  const evictions = (name: string) =>
    parseUserLog(agent.read(`${name}.log`)).events.filter((e) => e.type === 'evicted');
  async function finish({ cluster, ledger, name }: { cluster: number; ledger: string; name: string }): Promise<void> {
    agent.file(`${name}.ledger.over`, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const told = agent.read(`${name}.out`);
    const from = starts(ledger);
    // Each start continues where the previous one stopped, and the streams are continuous.
    const saved = [...told.matchAll(/saved (\d+)/g)].map(([, n]) => Number(n));
    expect(from).toEqual([0, ...saved]);
    expect(saved).toEqual([...saved].sort((a, b) => a - b));
    expect(Number(agent.read(`${name}.result`))).toBeGreaterThanOrEqual(saved.at(-1) ?? 0);
    expect(told).toMatch(/ended at \d+\n$/);
  }

  it.each([
    ['all that is new', ''],
    ['named files, of which some are not made yet', 'transfer_output_files = result, state\n'],
  ])(
    'continues where it was, whenever it is vacated: %s',
    async (_, outputs) => {
      const job = await counter(outputs);
      for (let times = 1; times <= 4; times++) {
        await started(job.ledger, times);
        await new Promise((resume) => setTimeout(resume, 300));
        await agent.ok('vacate', String(job.cluster));
      }
      const from = await started(job.ledger, 5);
      expect(from[4]).toBeGreaterThan(from[1] ?? Number.POSITIVE_INFINITY);
      await finish(job);
      expect(evictions(job.name)).toHaveLength(4);
      expect(evictions(job.name).every((event) => event.checkpointed === 1)).toBe(true);
      expect(agent.read(`${job.name}.log`)).toContain('\n\t(1) Job was checkpointed.\n');
      const [ad] = await agent.ads(job.cluster);
      expect(ad).toMatchObject({ NumCkpts: 4, NumJobStarts: 5, NumJobCompletions: 1 });
      expect(Number(ad?.['LastCkptTime'])).toBeGreaterThan(1e9);
      expect(existsSync(join(agent.work, 'state'))).toBe(true);
    },
    120_000,
  );

  it.each(
    some(
      [
        ['the worker', 'worker.mjs'],
        ['the central manager', 'central-manager-main'],
        ['the GridManager', 'gridmanager/main'],
        ['all of them', '/dist/'],
      ] as const,
      4,
    ),
  )(
    'loses nothing when %s is killed in between',
    async (_, what) => {
      const job = await counter();
      for (let times = 1; times <= 3; times++) {
        await started(job.ledger, times);
        await new Promise((resume) => setTimeout(resume, 200));
        // Its worker may still be returning from the previous time.
        const vacated = async () => (await agent.run(['vacate', String(job.cluster)])).code === 0 || undefined;
        await until('it to be vacated', vacated);
        // Some time after the command was given.
        await new Promise((resume) => setTimeout(resume, (times - 1) * 60));
        killMatching(what, agent);
        await agent.ok('up');
      }
      await started(job.ledger, 4);
      await finish(job);
    },
    180_000,
  );

  it('drops an incomplete checkpoint: it continues from the one before', async () => {
    const job = await counter('job_max_vacate_time = 1\n');
    await started(job.ledger, 1);
    await new Promise((resume) => setTimeout(resume, 300));
    await agent.ok('vacate', String(job.cluster));
    const [, second = 0] = await started(job.ledger, 2);
    expect(second).toBeGreaterThan(0);
    await agent.ok('rm', String(job.cluster));

    const stubborn = agent.file(
      'stubborn.sh',
      '#!/bin/sh\ntrap "echo half >state" TERM\necho "from $(cat state 2>/dev/null)" >>"$1"\nwhile [ ! -e "$1.over" ]; do sleep 0.05; done\n',
      0o755,
    );
    const ledger = join(agent.work, 'stubborn.ledger');
    const cluster = await agent.submit(
      `executable = ${stubborn}\narguments = ${ledger}\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\njob_max_vacate_time = 1\nlog = stubborn.log\nqueue\n`,
    );
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').length - 1 : 0);
    await until('it to start', () => lines() === 1 || undefined);
    await agent.ok('vacate', String(cluster));
    await until('it to start again', () => lines() === 2 || undefined);
    expect(readFileSync(ledger, 'utf8')).toBe('from \nfrom \n');
    expect(agent.read('stubborn.log')).toContain('\n\t(0) CPU times\n');
    await agent.ok('rm', String(cluster));
  }, 120_000);

  it('continues where it was when its machine prefers another', async () => {
    agent.config('[pool]\ncpus = 1\nrank = "TARGET.Liked =?= true"\n');
    await until('the machine to follow', async () => {
      const ads = await agent.ok('status', '--pool', '--long');
      return (ads.includes('TotalCpus = 1\n') && ads.includes('Rank = TARGET.Liked')) || undefined;
    });
    const job = await counter();
    await started(job.ledger, 1);
    await new Promise((resume) => setTimeout(resume, 300));
    const liked = await agent.submit('executable = /bin/true\ntransfer_executable = false\n+Liked = true\nqueue\n');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(liked));
    const [, second = 0] = await started(job.ledger, 2);
    expect(second).toBeGreaterThan(0);
    await finish(job);
  }, 120_000);

  it('is said to mean less elsewhere', async () => {
    agent.site('c1', { url: 'local', batch: 'fork' });
    const text =
      'executable = /bin/true\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue\n';
    const said = async (more: string) => {
      const { stderr, stdout } = await agent.run(['submit', '-'], { input: `hold = true\n${more}${text}` });
      await agent.ok('rm', /cluster (\d+)/.exec(stdout)?.[1] ?? '');
      return stderr;
    };
    expect(await said('')).toBe('');
    expect(await said('universe = grid\ngrid_resource = batch fork c1\n')).toContain(
      'ON_EXIT_OR_EVICT: site c1, unlike the pool, does not bring home what a job leaves when it is evicted.',
    );
    expect(await said('universe = grid\n')).toContain('ON_EXIT_OR_EVICT: only the pool brings home');
  }, 60_000);
});
