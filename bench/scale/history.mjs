// What `gryphus history` costs when very many jobs have ended: node bench/scale/history.mjs [--jobs N] [--runs N] [--no-stream] [--json], after
// `npm run build`. The files are written by the code that the Scheduler uses, without jobs that ran. By the clock and of the
// processor, medians, and what is left of them without the start of a command (`gryphus history` of an empty history).
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { bundled } from '../bundle.mjs';
import { Agent } from './agent.mjs';

const { values } = parseArgs({
  allowNegative: true,
  options: {
    jobs: { type: 'string', default: '10000000' },
    runs: { type: 'string', default: '11' },
    stream: { type: 'boolean', default: true },
    json: { type: 'boolean', default: false },
  },
});
const jobs = Number(values.jobs);
const agent = new Agent('[history]\nkeep_jobs = 1000000000\n');
const rows = [];

function row(what, aim, text) {
  rows.push({ what, aim, text });
  if (!values.json) console.log(`| ${what} | ${text} | ${aim} |`);
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

function measure(...args) {
  const runs = Array.from({ length: Number(values.runs) }, () => agent.ok('history', ...args));
  return { seconds: median(runs.map((one) => one.seconds)), cpu: median(runs.map((one) => one.cpu)) };
}

function command(what, aim, start, ...args) {
  const { seconds, cpu } = measure(...args);
  const ms = (s) => `${(s * 1000).toFixed(0)} ms`;
  row(
    what,
    aim,
    `${ms(seconds)} (${ms(cpu)} of the processor); over the start ${ms(seconds - start.seconds)} (${ms(cpu - start.cpu)})`,
  );
}

/** The most memory that the command takes, MB, and its seconds. */
async function streamed(...args) {
  const began = performance.now();
  const child = spawn(process.execPath, [agent.cli, 'history', ...args], {
    env: agent.env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  let peak = 0;
  const timer = setInterval(() => {
    try {
      peak = Math.max(
        peak,
        Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) / 1000,
      );
    } catch {
      // It has ended.
    }
  }, 100);
  await new Promise((resolve) => child.once('close', resolve));
  clearInterval(timer);
  return { peak, seconds: (performance.now() - began) / 1000 };
}

if (!values.json) console.log('| what | measured | aim |\n| --- | --- | --- |');
try {
  agent.ok('up');
  const start = measure();
  const state = join(agent.home, 'g/state');
  await bundled(new URL('./history.ts', import.meta.url), async ({ fill }) => {
    const spent = await fill(state, jobs);
    row(
      'writing them, compressing them, for each',
      '',
      `${((spent.append / jobs) * 1e6).toFixed(1)} µs, ${((spent.archive / jobs) * 1e6).toFixed(1)} µs`,
    );
  });
  row('disk for each', '', `${((agent.disk('g/state/history') * 1e6) / jobs).toFixed(0)} B`);
  const id = (n) => `${1 + Math.floor((jobs * n) / 1000)}.77`;
  command('one job by its id, an old one', '≤ 50 ms', start, id(0.1));
  command('one job by its id, a recent one', '≤ 50 ms', start, id(0.999));
  command('the last hundred', '≤ 100 ms', start, '--limit', '100');
  if (values.stream) {
    const all = await streamed('--constraint', 'ExitCode == 1 && ProcId == 50');
    row(
      '`--constraint` over all of them',
      'bounded memory',
      `${all.seconds.toFixed(0)} s, ${all.peak.toFixed(0)} MB at most`,
    );
  }
} finally {
  agent.end();
}
if (values.json) console.log(JSON.stringify(rows, undefined, 2));
