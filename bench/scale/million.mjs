// One submit of a million jobs, and what a user does with them: node bench/scale/million.mjs [--jobs N] [--late] [--log] [--json],
// after `npm run build`. Beside the seconds by the clock it prints those of the processor, of the command itself, of Redis and of
// the Scheduler, because only these say how fast it is on a machine that others use.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Agent } from './agent.mjs';

const { values } = parseArgs({
  options: {
    jobs: { type: 'string', default: '1000000' },
    late: { type: 'boolean', default: false },
    log: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const jobs = Number(values.jobs);
const agent = new Agent();
const rows = [];

function row(what, aim, value, unit, more = {}) {
  rows.push({ what, aim, value, unit, ...more });
  if (values.json) return;
  const rest = Object.entries(more).map(([name, n]) => `${name} ${n.toFixed(2)}`);
  console.log(`| ${what} | ${value.toFixed(value < 10 ? 2 : 0)} ${unit} | ${aim} | ${rest.join(', ')} |`);
}

const spent = () => Object.fromEntries(agent.processes().map(({ part, cpu }) => [part, cpu]));

function command(what, aim, ...args) {
  const before = spent();
  const done = agent.ok(...args);
  const after = spent();
  const used = (part) => Math.max(0, (after[part] ?? 0) - (before[part] ?? 0));
  row(what, aim, done.seconds, 's', { own: done.cpu, Redis: used('Redis'), Scheduler: used('Scheduler') });
}

/** Until the daemons do no more than wait. */
async function settled() {
  for (let last = -1; ; ) {
    const now = Object.values(spent()).reduce((sum, cpu) => sum + cpu, 0);
    if (now - last < 0.3) return;
    last = now;
    await sleep(3000);
  }
}

const redisBytes = () => Number(/used_memory:(\d+)/.exec(agent.redis('info', 'memory'))[1]);
const peak = (part) => Math.max(0, ...agent.processes().flatMap((one) => (one.part === part ? [one.peak] : [])));

async function measured() {
  agent.ok('up');
  const before = redisBytes();
  agent.file(
    'many.sub',
    [
      'executable = /bin/sleep',
      'arguments = 1$(Process)',
      // More than any machine has: they wait.
      'request_memory = 90T',
      ...(values.log ? ['log = many.log'] : []),
      ...(values.late ? ['max_materialize = 1000'] : []),
      `queue ${jobs}`,
      '',
    ].join('\n'),
  );
  command(`submit of ${jobs}`, '≤ 30 s', 'submit', 'many.sub');
  await settled();
  row('Redis for each job', '≤ 500 B', (redisBytes() - before) / jobs, 'B');
  row('the Scheduler, most', '< 400 MB', peak('Scheduler'), 'MB');
  row('the GridManager, most', '< 400 MB', peak('GridManager'), 'MB');
  command('q', '≤ 0.3 s', 'q');
  command('q --nobatch --limit 100', '≤ 0.2 s', 'q', '--nobatch', '--limit', '100');
  command('q --totals --constraint', '', 'q', '--totals', '--constraint', 'ProcId % 1000 == 7 && RequestMemory > 5');
  agent.ok('down');
  command('restart of everything', '≤ 20 s', 'up');
  await settled();
  agent.forgetPeaks();
  command('rm of all', '≤ 15 s', 'rm', '--all');
  const began = performance.now();
  const before2 = spent();
  await settled();
  const after = spent();
  row('until all are in the history', '', (performance.now() - began) / 1000, 's', {
    Redis: after.Redis - before2.Redis,
    Scheduler: after.Scheduler - before2.Scheduler,
  });
  row('the Scheduler, most, meanwhile', '< 400 MB', peak('Scheduler'), 'MB');
  command('history --limit 100', '≤ 0.1 s', 'history', '--limit', '100');
  command('history of one job', '≤ 0.05 s', 'history', '1.77');
  row('the state directory for each job', '', (agent.disk('g') * 1e6) / jobs, 'B');
}

if (!values.json) console.log('| what | measured | aim | seconds of the processor |\n| --- | --- | --- | --- |');
try {
  await measured();
} finally {
  agent.end();
}
if (values.json) console.log(JSON.stringify(rows, undefined, 2));
