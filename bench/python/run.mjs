// Futures of Python's module in the pool: node bench/python/run.mjs [NUMBER] [--rounds N], after `npm run build`.
import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent } from '../scale/agent.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '5' }, cpus: { type: 'string', default: '2' } },
});
const number = Number(positionals[0] ?? 10_000);
const agent = new Agent(`[pool]\ncpus = ${values.cpus}\n`);
const program = agent.file('gryphus', `#!/bin/sh\nexec '${process.execPath}' '${agent.cli}' "$@"\n`);
try {
  chmodSync(join(agent.home, program), 0o755);
  agent.ok('up');
  console.log('| round | load | first future | submit | all | futures a second |');
  console.log('| ---: | ---: | ---: | ---: | ---: | ---: |');
  for (let round = 1; round <= Number(values.rounds); round++) {
    const load = loadavg()[0].toFixed(1);
    const { status, stdout, stderr } = spawnSync('python3', [join(import.meta.dirname, 'futures.py'), String(number)], {
      env: {
        ...agent.env,
        GRYPHUS: join(agent.home, program),
        PYTHONPATH: join(import.meta.dirname, '../../python'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    const { first, submit, seconds } = JSON.parse(stdout);
    const s = (value) => `${value.toFixed(2)} s`;
    console.log(
      `| ${round} | ${load} | ${s(first)} | ${s(submit)} | ${s(seconds)} | ${(number / seconds).toFixed(0)} |`,
    );
  }
} finally {
  agent.end();
}
