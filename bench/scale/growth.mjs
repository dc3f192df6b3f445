// Whether the cost of a job grows with how many there are: node bench/scale/growth.mjs [--sizes 1000,10000,100000,1000000] [--json],
// after `npm run build`. For each size a new agent runs that many `/bin/true` of one submit file with a user log in its pool of
// eight slots; printed are the processor time of all daemons and Redis for each job (not the jobs' own), memory at most, Redis'
// memory and the state directory when all have ended.
import { parseArgs } from 'node:util';
import { Agent } from './agent.mjs';

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1000,10000,100000' },
    json: { type: 'boolean', default: false },
  },
});

const DAEMONS = ['Scheduler', 'user logs', 'GridManager', 'central manager', 'worker', 'Redis'];

function measure(jobs) {
  const agent = new Agent('[pool]\ncpus = 8\n');
  try {
    agent.ok('up');
    // The daemons' start, and the code that the first jobs compile, are not a job's cost.
    agent.file('jobs.sub', 'executable = /bin/true\ntransfer_executable = false\nlog = jobs.log\nqueue 200\n');
    agent.ok('submit', '--wait', 'jobs.sub');
    const spent = () =>
      agent.processes().reduce((all, { part, cpu }) => ({ ...all, [part]: (all[part] ?? 0) + cpu }), {});
    const redis = () => Number(/used_memory:(\d+)/.exec(agent.redis('info', 'memory'))[1]);
    agent.forgetPeaks();
    const before = { cpu: spent(), redis: redis(), disk: agent.disk('g') };
    agent.file('jobs.sub', `executable = /bin/true\ntransfer_executable = false\nlog = jobs.log\nqueue ${jobs}\n`);
    const { seconds } = agent.ok('submit', '--wait', 'jobs.sub');
    const after = { cpu: spent(), redis: redis(), disk: agent.disk('g') };
    const ms = Object.fromEntries(
      DAEMONS.map((part) => [part, (1000 * ((after.cpu[part] ?? 0) - (before.cpu[part] ?? 0))) / jobs]),
    );
    return {
      jobs,
      persecond: jobs / seconds,
      ms,
      all: Object.values(ms).reduce((sum, one) => sum + one, 0),
      peak: Object.fromEntries(agent.processes().map(({ part, peak }) => [part, peak])),
      redis: (after.redis - before.redis) / jobs,
      disk: (1e6 * (after.disk - before.disk)) / jobs,
    };
  } finally {
    agent.end();
  }
}

const rows = [];
if (!values.json)
  console.log(
    `| jobs | jobs a second | ms for each | ${DAEMONS.join(', ')} | MB at most | Redis, disk for each |\n| ---: | ---: | ---: | --- | --- | --- |`,
  );
for (const size of values.sizes.split(',').map(Number)) {
  const row = measure(size);
  rows.push(row);
  if (values.json) continue;
  const parts = (of, digits) => DAEMONS.map((part) => (of[part] ?? 0).toFixed(digits)).join(', ');
  console.log(
    `| ${size} | ${row.persecond.toFixed(0)} | ${row.all.toFixed(2)} | ${parts(row.ms, 2)} | ${parts(row.peak, 0)} | ${row.redis.toFixed(0)} B, ${row.disk.toFixed(0)} B |`,
  );
}
if (values.json) console.log(JSON.stringify(rows, undefined, 2));
