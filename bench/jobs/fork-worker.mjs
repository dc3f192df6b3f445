// What a fork site's worker costs for each job, the job's program (a copy of `true`) included: processor time with the site's small
// starter, and without it, in turns. `node bench/jobs/fork-worker.mjs [JOBS] [--rounds N] [--calls]`; no agent takes part. Files are
// made in $TMPDIR. --calls: one more round with the starter under strace, which counts system calls.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, calls: { type: 'boolean', default: false } },
});
const jobs = Number(positionals[0] ?? 300);
const SRC = join(import.meta.dirname, '../../src');
const FILES = [
  ...['wrapper', 'inputs', 'memory'].map((name) => `jobmanager/${name}.sh`),
  ...['fork-worker', 'fork-start'].map((name) => `backends/${name}.sh`),
  'util/ends.sh',
];
/** What costs: bytes (a shell reads one at a time), files and names, processes. */
const COUNTED = ['read', 'write', 'openat', 'mkdir', 'unlinkat', 'clone', 'vfork', 'execve'];
const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

/** Ms of processor time for each job of one worker in a new directory; `command`: what runs its shell. */
function round(withStarter, command = []) {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-fork-'));
  const bin = join(dir, 'bin');
  try {
    for (const name of ['bin', 'cache', 'jobs', 'events', 'tmp', 'fork/queue', 'fork/running'])
      mkdirSync(join(dir, name), { recursive: true });
    for (const name of FILES) copyFileSync(join(SRC, name), join(bin, basename(name)));
    const program = join(dir, 'cache/abc.x');
    copyFileSync('/bin/true', join(dir, 'cache/abc'));
    copyFileSync('/bin/true', program);
    chmodSync(program, 0o500);
    for (let proc = 0; proc < jobs; proc++) {
      const key = `a.1.${proc}.1`;
      mkdirSync(join(dir, 'jobs', key, 'work'), { recursive: true });
      writeFileSync(join(dir, 'jobs', key, 'intent.1'), '');
      writeFileSync(join(dir, 'jobs', key, 'spec'), 'prepared 1\nblob abc 35000 x\nprogram\nend\n');
      writeFileSync(join(dir, `fork/queue/${1_000_000 + proc}-${key}:1`), '');
    }
    const script = `ROOT=$1 BIN=$1/bin T=$1/tmp START=
      [ -z "$2" ] || { . "$BIN/fork-start.sh"; find_starter; [ -n "$START" ] || exit 1; }
      sh "$BIN/fork-worker.sh" "$ROOT" "$BIN" 1 "$3" "$4" --default-signal=INT,QUIT "$START"; times`;
    const [first, ...words] = [...command, 'sh', '-c', script, 'sh', dir, withStarter ? 'yes' : '', hostname(), boot];
    const [, children = ''] = execFileSync(first, words, { encoding: 'utf8' }).trim().split('\n');
    const seconds = [...children.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
      (sum, [, m, s]) => sum + 60 * Number(m) + Number(s),
      0,
    );
    const ended = readdirSync(join(dir, 'events')).filter((name) => name.endsWith('.x')).length;
    if (ended !== jobs) throw new Error(`${ended} of ${jobs} jobs ended`);
    return (seconds * 1000) / jobs;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function printCalls() {
  const out = join(mkdtempSync(join(tmpdir(), 'gryphus-strace-')), 'counts');
  round(true, ['strace', '-f', '-c', '-e', `trace=${COUNTED.join(',')}`, '-o', out]);
  const counts = readFileSync(out, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => COUNTED.includes(words.at(-1)))
    .map((words) => `${words.at(-1)} ${(Number(words[3]) / jobs).toFixed(1)}`);
  rmSync(dirname(out), { recursive: true });
  console.log(`calls a job: ${counts.join(', ')}`);
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const [by, without] = [[], []];
for (let n = 0; n < Number(values.rounds); n++) {
  by.push(round(true));
  without.push(round(false));
}
const [a, b] = [median(by), median(without)];
console.log(
  `ms of processor time a job: ${a.toFixed(2)} with the starter, ${b.toFixed(2)} without, ratio ${(b / a).toFixed(2)} (${jobs} jobs, median of ${values.rounds})`,
);
if (values.calls) printCalls();
