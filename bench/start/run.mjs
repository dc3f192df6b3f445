// How long a command takes to start: node bench/start/run.mjs [--runs N] [--json], after `npm run build`. Medians by the clock, in turns
// with `node -e 0`, whose median is subtracted; and the processor's time, which other load changes less. The commands of other systems are
// those of `compat install`, called as tools call them, with the command server and without.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent } from '../scale/agent.mjs';

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '25' }, json: { type: 'boolean', default: false } },
});
const agent = new Agent();
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

function bare() {
  const began = performance.now();
  const { stderr } = spawnSync('/bin/sh', ['-c', '"$0" -e 0; times >&2', process.execPath], { encoding: 'utf8' });
  return { seconds: (performance.now() - began) / 1000, cpu: Agent.cpuOf(stderr) };
}

/** Commands of other systems: by the clock of their callers, and their own processor time, which is not the server's. */
function installed(directory) {
  agent.ok('compat', 'install', directory, ...(directory === 'alone' ? ['--no-server'] : []));
  return (name, ...words) => {
    const began = performance.now();
    const line = 'exec 3>&1; "$@" >/dev/null; s=$?; times >&2; exit $s';
    const program = join(agent.home, directory, name);
    const { stderr } = spawnSync('/bin/sh', ['-c', line, 'sh', program, ...words], {
      env: agent.env,
      encoding: 'utf8',
    });
    return { seconds: (performance.now() - began) / 1000, cpu: Agent.cpuOf(stderr) };
  };
}

function compare(kinds) {
  const runs = kinds.map(() => []);
  for (let i = 0; i < Number(values.runs); i++) for (const [n, [, run]] of kinds.entries()) runs[n].push(run());
  const ms = runs.map((some) => ({
    clock: median(some.map(({ seconds }) => seconds)) * 1000,
    cpu: median(some.map(({ cpu }) => cpu)) * 1000,
  }));
  return kinds.map(([what, , aim], n) => ({
    what,
    aim,
    ms: ms[n].clock,
    overNode: ms[n].clock - ms[0].clock,
    cpuOverNode: ms[n].cpu - ms[0].cpu,
  }));
}

try {
  agent.ok('up');
  const [alone, served] = [installed('alone'), installed('served')];
  // The second call starts the server.
  for (let i = 0; i < 20; i++) served('sinfo');
  const both = (words, aim) => [
    [words.join(' '), () => served(...words), aim],
    [`${words.join(' ')}, without the server`, () => alone(...words), aim],
  ];
  const rows = compare([
    ['node -e 0', bare, ''],
    ['gryphus --version', () => agent.ok('--version'), '≤ 60 ms'],
    ['gryphus q, empty queue', () => agent.ok('q'), '≤ 120 ms'],
    ...both(['sinfo'], '≤ 150 ms in all'),
    ...both(['condor_version'], '≤ 150 ms in all'),
  ]);
  agent.file('held.sub', 'executable = /bin/true\narguments = $(Process)\nhold = true\nqueue 10000\n');
  agent.ok('submit', 'held.sub');
  // Of 10,000 jobs.
  const [, ...listed] = compare([
    ['node -e 0', bare, ''],
    ['gryphus q --nobatch, 10,000 jobs', () => agent.ok('q', '--nobatch'), '≤ 170 ms in all'],
    ...both(['squeue', '-j', '1_1'], '≤ 150 ms in all'),
    ...both(['squeue'], '≤ 500 ms in all'),
    ...both(['condor_q'], '≤ 500 ms in all'),
    ...both(['condor_q', '-nobatch'], '≤ 500 ms in all'),
  ]);
  rows.push(...listed);
  if (values.json) console.log(JSON.stringify(rows, undefined, 2));
  else {
    console.log(
      '| command | by the clock | over node | of the processor over node | aim |\n| --- | ---: | ---: | ---: | --- |',
    );
    for (const { what, ms, overNode, cpuOverNode, aim } of rows)
      console.log(
        `| ${what} | ${ms.toFixed(0)} ms | ${overNode.toFixed(0)} ms | ${cpuOverNode.toFixed(0)} ms | ${aim} |`,
      );
  }
} finally {
  agent.end();
}
