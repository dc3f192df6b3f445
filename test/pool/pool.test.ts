import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching, processesOf } from '../agent/kill.ts';
import { SLOW, some } from '../slow.ts';

/** Those of parallel jobs: test/pool/gangs-agent.test.ts. */
type OfGangs = `central-manager.${string}-${'gang' | 'go' | 'over' | 'release'}`;
/** Every other crash point of the pool's processes; the type keeps the list complete. */
const POINTS: Readonly<
  Record<Exclude<Extract<CrashPoint, `central-manager.${string}` | `worker.${string}`>, OfGangs>, 'run' | 'stop'>
> = {
  'central-manager.before-prepare': 'run',
  'central-manager.saved-prepare': 'run',
  'central-manager.before-commit': 'run',
  'central-manager.saved-commit': 'run',
  'central-manager.before-grant': 'run',
  'central-manager.saved-grant': 'run',
  'worker.before-record': 'run',
  'worker.saved-record': 'run',
  'worker.before-start': 'run',
  'worker.after-start': 'run',
  'worker.before-end': 'run',
  'worker.after-end': 'run',
  'central-manager.before-end': 'run',
  'central-manager.saved-end': 'run',
  'central-manager.before-forget': 'run',
  'central-manager.saved-forget': 'run',
  'worker.before-stop': 'stop',
};

const JOBS = 4;
const CONFIG = '[pool]\ncpus = 3\n[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n';

describe('the pool of a whole agent', () => {
  let agent: TestAgent;
  let crashFile: string;

  beforeAll(async () => {
    agent = new TestAgent();
    crashFile = join(agent.dir, 'crash-point');
    agent.env['GRYPHUS_CRASH_FILE'] = crashFile;
    agent.config(CONFIG);
    agent.file('job.sh', '#!/bin/sh\necho "$1" >> "$2"\necho "out $1"\nsleep $3\necho "file $1" > "r$1"\n', 0o755);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  const lines = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').sort() : []);

  /** Jobs that write a line to a ledger when they start, their argument to stdout, and a file. */
  async function submit(seconds: string, jobs = JOBS): Promise<{ cluster: number; ledger: string }> {
    const ledger = join(agent.work, `ledger-${Math.random().toString(36).slice(2)}`);
    const cluster = await agent.submit(
      [
        'executable = job.sh',
        `arguments = $(Process) ${ledger} ${seconds}`,
        'output = o$(Process)',
        'transfer_output_files = r$(Process)',
        'log = job.log',
        `queue ${jobs}`,
      ].join('\n'),
    );
    return { cluster, ledger };
  }

  const story = async (cluster: number) =>
    `${(await agent.run(['why', String(cluster)])).stdout}\n${agent.log('pool.log').slice(-2000)}\n${agent.log('pool-worker.log').slice(-1000)}`;

  async function running({ cluster, ledger }: { cluster: number; ledger: string }, jobs: number): Promise<void> {
    await until('the jobs to run', () => lines(ledger).length === jobs || undefined).catch(async (thrown: unknown) => {
      throw new Error(await story(cluster), { cause: thrown });
    });
  }

  async function finish({ cluster, ledger }: { cluster: number; ledger: string }, jobs = JOBS): Promise<void> {
    const waited = await agent.run(['wait', '--no-outcome', '--timeout', '60', String(cluster)]);
    if (waited.code !== 0) throw new Error(await story(cluster));
    expect(lines(ledger)).toEqual(Array.from({ length: jobs }, (_, proc) => String(proc)));
    for (let proc = 0; proc < jobs; proc++) {
      expect(agent.read(`o${proc}`)).toBe(`out ${proc}\n`);
      expect(agent.read(`r${proc}`)).toBe(`file ${proc}\n`);
      rmSync(join(agent.work, `o${proc}`));
      rmSync(join(agent.work, `r${proc}`));
    }
    await until('the worker to forget', () => attempts().length === 0 || undefined);
  }

  const attempts = () => [
    ...readdirSync(join(agent.home, 'state/pool/worker/jobs')),
    // For the tasks of maps, which have no directories of their own.
    ...readdirSync(join(agent.home, 'state/pool/worker/task-runners'), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.out') && statSync(join(agent.home, 'state/pool/worker/task-runners', name)).size > 0,
    ),
  ];

  it('runs jobs, more than it has slots', async () => {
    await finish(await submit('0.1'));
  }, 90_000);

  it.each(
    some(
      Object.keys(POINTS).filter((point) => POINTS[point as keyof typeof POINTS] === 'run'),
      3,
    ),
  )(
    'runs each job once when a process dies at %s',
    async (point) => {
      writeFileSync(crashFile, point);
      const submitted = await submit('0.3');
      await until(`a crash at ${point}`, () => !existsSync(crashFile) || undefined);
      await finish(submitted);
    },
    90_000,
  );

  it('runs each job once when everything is killed in its midst', async () => {
    const submitted = await submit('4');
    await running(submitted, 3);
    killMatching('pool/central-manager/central-manager-main.js', agent);
    killMatching('worker.mjs', agent);
    killMatching('gridmanager/main.js', agent);
    killMatching('scheduler/main.js', agent);
    await agent.ok('up');
    await finish(submitted);
  }, 90_000);

  it.skipIf(!SLOW)(
    'continues with another central manager when its own hangs',
    async () => {
      agent.config(`${CONFIG}hung_after = "5s"\n`);
      const submitted = await submit('3');
      await running(submitted, 3);
      const [centralManager = 0] = processesOf('pool/central-manager/central-manager-main.js', agent);
      process.kill(centralManager, 'SIGSTOP');
      await finish(submitted);
      expect(agent.log('scheduler.log')).toContain('central manager hangs');
      agent.config(CONFIG);
    },
    120_000,
  );

  it('removes jobs, also when the worker dies in the midst of it', async () => {
    const { cluster, ledger } = await submit('600', 3);
    await running({ cluster, ledger }, 3);
    writeFileSync(crashFile, 'worker.before-stop');
    await agent.ok('rm', String(cluster));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(existsSync(crashFile)).toBe(false);
    expect((await agent.ads(cluster)).map((ad) => ad['JobStatus'])).toEqual([3, 3, 3]);
    await until('the worker to forget', () => attempts().length === 0 || undefined);
  }, 90_000);

  it('ends the tasks of a map that is left by Ctrl-C, and starts none of them again', async () => {
    const ledger = join(agent.work, 'ledger-left');
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n').sort() : []);
    const map = agent.start(['map', `echo {} >> ${ledger}; sleep 600`, ':::', '1', '2', '3', '4']);
    let said = '';
    map.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = new Promise<number | null>((resolve) => map.once('close', resolve));
    await until('a task on each core', () => lines().length === 3);
    map.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(said).toContain('gryphus: The map was interrupted');
    // These need all cores.
    await agent.ok('map', 'true', ':::', '1', '2', '3');
    expect(lines()).toEqual(['1', '2', '3']);
  }, 120_000);

  it('maps a command over inputs, each once, while the central manager and the worker are killed', async () => {
    const ledger = join(agent.work, 'ledger-map');
    const inputs = Array.from({ length: 60 }, (_, i) => `${i} o'clock $(x)`);
    const map = agent.start(['map', `echo {} | tee -a ${ledger}; sleep 0.2`, ':::', ...inputs]);
    let said = '';
    map.stdout?.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = new Promise<number | null>((resolve) => map.once('close', resolve));
    await until('some tasks to run', () => lines(ledger).length > 5 || undefined, 60_000);
    killMatching('pool/central-manager/central-manager-main.js', agent);
    await until('more tasks to run', () => lines(ledger).length > 20 || undefined, 60_000);
    killMatching('worker.mjs', agent);
    expect(await ended).toBe(0);
    expect(said.trim().split('\n').sort()).toEqual([...inputs].sort());
    expect(lines(ledger)).toEqual([...inputs].sort());
    await until('the worker to forget', () => attempts().length === 0 || undefined);
  }, 120_000);

  it('says how many tasks failed, and tries them again', async () => {
    const count = join(agent.work, 'tries');
    const { code, stdout } = await agent.run(['map', '--retries', '1', `echo {} >> ${count}; test {} != bad`], {
      input: 'good\nbad\nworse\n',
    });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(lines(count)).toEqual(['bad', 'bad', 'good', 'worse']);
  }, 60_000);

  it('shows slots, vacates and suspends', async () => {
    const { cluster, ledger } = await submit('600', 1);
    await running({ cluster, ledger }, 1);
    const claimed = ['status', '--pool', '--constraint', 'State == "Claimed"', '-af', 'JobId', 'Activity'];
    await until('a claim', async () => (await agent.ok(...claimed)) === `${cluster}.0 Busy\n` || undefined);
    expect(await agent.ok('suspend', `${cluster}.0`)).toBe(`Job ${cluster}.0 suspended\n`);
    await until('it to be suspended', async () => (await agent.ok(...claimed)).includes('Suspended') || undefined);
    await agent.ok('continue', `${cluster}.0`);
    await until('it to run on', async () => (await agent.ok(...claimed)).includes('Busy') || undefined);
    await agent.ok('vacate', `${cluster}.0`);
    await until('it to run again', () => lines(ledger).length === 2 || undefined);
    await agent.ok('rm', String(cluster));
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect((await agent.ok('status', '--compact')).split('\n')[0]).toContain('FreCpu');
  }, 90_000);

  it('continues elsewhere from what a job saved of its own work', async () => {
    agent.file(
      'save.sh',
      `#!/bin/sh
n=$(cat state || echo 0)
echo "run $n"
echo "$n" >> "$1"
[ "$n" -lt 2 ] || while ! [ -e "$1.go" ]; do sleep 0.05; done
echo $((n + 1)) > state
[ "$n" -ge 2 ] || exit 85
`,
      0o755,
    );
    const ledger = join(agent.work, `ledger save ${Math.random().toString(36).slice(2)}`);
    const cluster = await agent.submit(
      `executable = save.sh
arguments = "'${ledger}'"
output = save.out
log = save.log
checkpoint_exit_code = 85
transfer_checkpoint_files = state
queue
`,
    );
    await until('the third run', () => lines(ledger).length === 3 || undefined).catch(async (thrown: unknown) => {
      throw new Error(await story(cluster), { cause: thrown });
    });
    await until('it to be known to run', async () => (await agent.ads(cluster))[0]?.['JobStatus'] === 2 || undefined);
    // From the first byte on, including what was written before the last checkpoint.
    const follower = agent.start(['tail', '-f', `${cluster}.0`]);
    let followed = '';
    follower.stdout?.setEncoding('utf8').on('data', (more: string) => (followed += more));
    const follows = (text: string) =>
      until(text, () => followed === text || undefined).catch(async (thrown: unknown) => {
        const ads = JSON.stringify(await agent.ads(cluster));
        const ran = lines(ledger).join();
        throw new Error(`${JSON.stringify(followed)}; ran ${ran}; ${ads}\n${await story(cluster)}`, { cause: thrown });
      });
    await follows('run 0\nrun 1\nrun 2\n');
    expect(await agent.ok('tail', `${cluster}.0`)).toBe(followed);
    expect(await agent.ok('tail', '--bytes', '8', `${cluster}.0`)).toBe('1\nrun 2\n');
    await agent.ok('vacate', `${cluster}.0`);
    await until('it to go on', () => lines(ledger).length === 4 || undefined);
    // What runs again after the vacate is written again.
    await follows('run 0\nrun 1\nrun 2\nrun 2\n');
    writeFileSync(`${ledger}.go`, '');
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    expect(lines(ledger)).toEqual(['0', '1', '2', '2']);
    expect([agent.read('save.out'), agent.read('state')]).toEqual(['run 0\nrun 1\nrun 2\n', '3\n']);
    await until('the follower to end', () => follower.exitCode ?? undefined);
    expect(followed).toBe('run 0\nrun 1\nrun 2\nrun 2\n');
    const log = agent.read('save.log');
    expect(log.match(/^004 .*$/gm)?.map((line) => line.replace(/^.*(?=Job was)/, ''))).toEqual([
      'Job was evicted. Code 1022 Subcode 0',
    ]);
    expect(readdirSync(join(agent.home, 'state/spool/.checkpoints'))).toEqual([]);
  }, 90_000);

  it('says why a job waits', async () => {
    const cluster = await agent.submit('executable = job.sh\nrequest_cpus = 64\nqueue\n');
    const why = await until('an answer', async () => {
      const { stdout } = await agent.run(['why', String(cluster)]);
      return stdout.includes('1 worker') ? stdout : undefined;
    });
    expect(why).toContain('1 worker: too small: the job requests 64 cores (3 in all).');
    await agent.ok('rm', String(cluster));
  }, 60_000);

  it('kills what forked away from its job', async () => {
    agent.file(
      'fork.sh',
      `#!/bin/sh\nsetsid sh -c 'echo $$ > "$1"; sleep 600' sh "$1/long" &\nwhile ! [ -s "$1/long" ]; do sleep 0.05; done\n`,
      0o755,
    );
    const cluster = await agent.submit(`executable = fork.sh\narguments = ${agent.work}\nqueue\n`);
    await agent.ok('wait', '--no-outcome', '--timeout', '60', String(cluster));
    const pid = Number(agent.read('long'));
    expect(pid).toBeGreaterThan(1);
    await until('the fork to be gone', () => !existsSync(`/proc/${pid}/cmdline`) || undefined);
  }, 90_000);
});
