// How many ordinary jobs per second go from `gryphus submit --wait` to their ends, and what each costs: processor time
// of each of
// our processes, Redis' commands, scripts and fsyncs. `node bench/jobs/run.mjs [JOBS] [--kind true|output|files|fork] [--rounds N] [--json]`,
// after `npm run build`; `GRYPHUS_DIST` names another build to compare with. Eight slots; the median of the rounds counts.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kind: { type: 'string', default: 'true' },
    rounds: { type: 'string', default: '5' },
    json: { type: 'boolean', default: false },
  },
});
const jobs = Number(positionals[0] ?? 10_000);
const cli = join(import.meta.dirname, '../..', process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), '[pool]\ncpus = 8\n');
writeFileSync(join(home, 'in.txt'), 'one small input\n');

const KINDS = {
  true: ['executable = /bin/true'],
  output: ['executable = /bin/echo', 'arguments = $(Process)', 'output = out.$(Process)', 'error = err.$(Process)'],
  files: [
    'executable = /bin/cat',
    'arguments = in.txt',
    'transfer_input_files = in.txt',
    'output = out.$(Process)',
    'error = err.$(Process)',
  ],
  fork: ['universe = grid', 'grid_resource = batch fork local', 'executable = /bin/true'],
};

function submitFile(round) {
  const lines = KINDS[values.kind];
  if (!lines) throw new Error(`--kind is one of ${Object.keys(KINDS).join(', ')}`);
  const path = join(home, `jobs-${round}.sub`);
  writeFileSync(path, [...lines, `log = jobs-${round}.log`, `queue ${jobs}`, ''].join('\n'));
  return path;
}

/** Our processes, by what they are: processor seconds of their own, and of their ended children (proc(5); USER_HZ is 100). */
const PARTS = [
  ['Scheduler', /scheduler.main/],
  ['user logs', /writer-main/],
  ['GridManager', /gridmanager.main/],
  ['central manager', /central-manager-main/],
  ['Redis', /redis-server/],
  ['shells', /gryphus-starter|jobmanager|fork/],
  ['worker', /worker/],
];

function processorSeconds() {
  const sums = Object.fromEntries(PARTS.map(([name]) => [name, 0]));
  let programs = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      const text = command + readFileSync(`/proc/${pid}/environ`, 'utf8') + readlinkSync(`/proc/${pid}/cwd`);
      if (!text.includes(home)) continue;
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const times = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .slice(11, 15)
        .map((ticks) => Number(ticks) / 100);
      const part = PARTS.find(([, pattern]) => pattern.test(command))?.[0];
      if (part) sums[part] += times[0] + times[1];
      if (part === 'shells') programs += times[2] + times[3];
    } catch {
      // It exited in the meantime.
    }
  }
  return { ...sums, programs };
}

function gryphus(...args) {
  return spawnSync(process.execPath, [cli, ...args], {
    env,
    cwd: home,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  });
}

/** The socket of our private Redis. */
function socketOf(pid) {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    const path = command.match(/unixsocket:([^\s\0]+)/)?.[1];
    return path?.startsWith(home) ? path : [];
  } catch {
    return [];
  }
}

function redisInfo() {
  const pid = spawnSync('pgrep', ['-f', 'redis-server'], { encoding: 'utf8' }).stdout;
  for (const path of pid.split('\n').flatMap(socketOf)) {
    const { stdout, status } = spawnSync('redis-cli', ['-s', path, 'info', 'commandstats'], { encoding: 'utf8' });
    if (status === 0 && stdout.includes('evalsha'))
      return Object.fromEntries(
        [...stdout.matchAll(/^cmdstat_(\S+):calls=(\d+),usec=(\d+)/gm)].map(([, name, calls, usec]) => [
          name,
          { calls: Number(calls), usec: Number(usec) },
        ]),
      );
  }
  return {};
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const rounds = [];
try {
  gryphus('submit', '--wait', '-a', 'executable=/bin/true', '-a', 'queue');
  for (let round = 0; round < Number(values.rounds); round++) {
    const file = submitFile(round);
    const [before, redisBefore, began] = [processorSeconds(), redisInfo(), performance.now()];
    const { status } = gryphus('submit', '--wait', file);
    const seconds = (performance.now() - began) / 1000;
    const [after, redisAfter] = [processorSeconds(), redisInfo()];
    const log = readFileSync(join(home, `jobs-${round}.log`), 'utf8');
    const ends = log.match(/^005 /gm)?.length ?? 0;
    const each = Object.fromEntries(
      Object.keys(after).map((name) => [name, ((after[name] - before[name]) / jobs) * 1000]),
    );
    const redis = Object.fromEntries(
      Object.entries(redisAfter)
        .map(([name, { calls, usec }]) => [
          name,
          {
            calls: (calls - (redisBefore[name]?.calls ?? 0)) / jobs,
            usec: (usec - (redisBefore[name]?.usec ?? 0)) / jobs,
          },
        ])
        .filter(([, { calls }]) => calls > 0.005),
    );
    rounds.push({ seconds, rate: jobs / seconds, status, ends, each, redis });
    if (!values.json) {
      console.log(
        `${values.kind}: ${jobs} jobs in ${seconds.toFixed(2)} s, ${Math.round(jobs / seconds)} a second (status ${status}, ${ends} ends in the log)`,
      );
      console.log(
        `  ms of processor time a job: ${Object.entries(each)
          .map(([name, ms]) => `${name} ${ms.toFixed(2)}`)
          .join(', ')}`,
      );
      console.log(
        `  Redis, calls a job: ${Object.entries(redis)
          .map(([name, { calls, usec }]) => `${name} ${calls.toFixed(2)} (${usec.toFixed(0)} µs)`)
          .join(', ')}`,
      );
    }
  }
  const rate = median(rounds.map((one) => one.rate));
  if (values.json) console.log(JSON.stringify({ kind: values.kind, jobs, rate, rounds }));
  else console.log(`median: ${Math.round(rate)} jobs a second`);
} finally {
  gryphus('down');
  rmSync(home, { recursive: true, force: true });
}
