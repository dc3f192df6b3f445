// How many ordinary jobs a second go from `gryphus submit --wait` to their ends, and what each costs: processor time, bytes and calls
// of each of our processes, and Redis' commands. `node bench/jobs/run.mjs [JOBS] [--kind true|output|files|inputs|fork] [--rounds N]
// [--condor N] [--budget] [--json]`, after `npm run build`; `GRYPHUS_DIST` names another build to compare with. Eight slots; the
// median of the rounds counts. --condor: between the rounds, N of the same jobs by a personal HTCondor (there after `npm test`).
// --budget: one more round under strace, which counts flushes, and files that are opened, made and removed. Files are made in
// $TMPDIR: on ext4 without a journal, many files that others removed nearby make this slow.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundled } from '../bundle.mjs';
import { counting, each as perJob, machineMs, used } from './processes.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kind: { type: 'string', default: 'true' },
    rounds: { type: 'string', default: '5' },
    condor: { type: 'string' },
    budget: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const jobs = Number(positionals[0] ?? 10_000);
const cli = join(import.meta.dirname, '../..', process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
// The fork site keeps its files in $HOME.
const env = { ...process.env, HOME: home, GRYPHUS_HOME: join(home, 'g') };
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), '[pool]\ncpus = 8\n');

/** `inputs`: each job has an input of its own. */
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
  inputs: [
    'executable = /bin/cat',
    'arguments = in.$(Process)',
    'transfer_input_files = in.$(Process)',
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

function commandsSince(before, after) {
  return Object.fromEntries(
    Object.entries(after)
      .map(([name, { calls, usec }]) => [
        name,
        { calls: (calls - (before[name]?.calls ?? 0)) / jobs, usec: (usec - (before[name]?.usec ?? 0)) / jobs },
      ])
      .filter(([, { calls }]) => calls > 0.005),
  );
}

function round(name) {
  const file = submitFile(name);
  const [before, redisBefore, busyBefore, began] = [used(home), redisInfo(), machineMs(), performance.now()];
  const { status } = gryphus('submit', '--wait', file);
  const seconds = (performance.now() - began) / 1000;
  const busy = (machineMs() - busyBefore) / jobs;
  const [after, redisAfter] = [used(home), redisInfo()];
  const ends = readFileSync(join(home, `jobs-${name}.log`), 'utf8').match(/^005 /gm)?.length ?? 0;
  const redis = commandsSince(redisBefore, redisAfter);
  const each = perJob(before, after, jobs);
  const ms = Object.values(each).reduce((sum, one) => sum + one.ms, 0);
  const load = loadavg()[0];
  if (!values.json) {
    console.log(
      `${values.kind}: ${jobs} jobs in ${seconds.toFixed(2)} s, ${Math.round(jobs / seconds)} a second (status ${status}, ${ends} ends in the log, load ${load.toFixed(0)})`,
    );
    console.log(
      `  ms of processor time a job: ${ms.toFixed(2)}: ${Object.entries(each)
        .map(([part, one]) => `${part} ${one.ms.toFixed(2)}`)
        .join(', ')}; of the whole machine ${busy.toFixed(2)}`,
    );
    console.log(
      `  kB read and written, calls a job: ${Object.entries(each)
        .filter(([, one]) => one.calls > 0)
        .map(
          ([part, one]) =>
            `${part} ${(one.read / 1000).toFixed(1)} ${(one.written / 1000).toFixed(1)} ${one.calls.toFixed(1)}`,
        )
        .join(', ')}`,
    );
    console.log(
      `  Redis, calls a job: ${Object.entries(redis)
        .map(([command, { calls, usec }]) => `${command} ${calls.toFixed(2)} (${usec.toFixed(0)} µs)`)
        .join(', ')}`,
    );
  }
  return { seconds, rate: jobs / seconds, status, ends, load, ms, busy, each, redis };
}

/** Jobs a second by a personal HTCondor, from condor_submit to the end of condor_wait. */
function condorRound(condor, name, count) {
  const dir = join(condor.dir, 'bench');
  const log = join(dir, `jobs-${name}.log`);
  const file = join(dir, `jobs-${name}.sub`);
  const lines = KINDS[values.kind].map((line) => line.replaceAll('in.txt', join(dir, 'in.txt')));
  const places = lines.map((line) =>
    line.replace(/= (out|err)\./, `= ${dir}/$1.`).replace(/= in\.\$/, `= ${dir}/in.$`),
  );
  writeFileSync(file, [...places, `log = ${log}`, `queue ${count}`, ''].join('\n'));
  const began = performance.now();
  condor.run('condor_submit', '-terse', file);
  condor.run('condor_wait', log);
  return count / ((performance.now() - began) / 1000);
}

async function withCondor(use) {
  if (values.condor === undefined) return use(undefined);
  await bundled(new URL('../../test/sites/condor.ts', import.meta.url), async ({ startCondor }) => {
    const condor = await startCondor({ slots: 8 });
    try {
      const dir = join(condor.dir, 'bench');
      mkdirSync(dir);
      chmodSync(dir, 0o777);
      writeInputs(dir, Number(values.condor));
      await use(condor);
    } finally {
      await condor.stop();
    }
  });
}

function writeInputs(dir, count) {
  writeFileSync(join(dir, 'in.txt'), 'one small input\n');
  if (values.kind === 'inputs')
    for (let proc = 0; proc < count; proc++) writeFileSync(join(dir, `in.${proc}`), `input ${proc}\n`);
}

async function printBudget() {
  const stop = await counting(home);
  gryphus('submit', '--wait', submitFile('budget'));
  const counts = await stop();
  const budget = Object.entries(counts).map(([part, calls]) => {
    const some = Object.entries(calls).map(([name, count]) => [name, count / jobs]);
    return [part, Object.fromEntries(some)];
  });
  for (const [part, calls] of budget)
    console.log(
      `  ${part}: ${Object.entries(calls)
        .map(([name, count]) => `${name} ${count.toFixed(2)}`)
        .join(', ')}`,
    );
}

const rounds = [];
const peers = [];
try {
  writeInputs(home, jobs);
  gryphus('submit', '--wait', '-a', 'executable=/bin/true', '-a', 'queue');
  await withCondor(async (condor) => {
    for (let n = 0; n < Number(values.rounds); n++) {
      rounds.push(round(n));
      if (condor) peers.push(condorRound(condor, n, Number(values.condor)));
    }
  });
  const rate = median(rounds.map((one) => one.rate));
  const peer = peers.length === 0 ? undefined : median(peers);
  if (values.json) console.log(JSON.stringify({ kind: values.kind, jobs, rate, peer, rounds }));
  else {
    const against = peer === undefined ? '' : `; HTCondor ${peer.toFixed(1)}, ratio ${(rate / peer).toFixed(1)}`;
    console.log(
      `median: ${Math.round(rate)} jobs a second, ${median(rounds.map((one) => one.ms)).toFixed(2)} ms of processor time a job${against}`,
    );
  }
  if (values.budget) await printBudget();
} finally {
  gryphus('down');
  rmSync(home, { recursive: true, force: true });
}
