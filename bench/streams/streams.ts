import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { TestAgent, until } from '../../test/agent/agent.ts';
import { startTarget } from '../../test/crash/sites.ts';
import { CpuByName } from '../cpu.ts';

export async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { files: { type: 'string', default: '10000' }, site: { type: 'boolean', default: false } },
  });
  const files = Number(values.files);
  const agent = new TestAgent();
  agent.config('[pool]\ncpus = 1\n');
  const target = await startTarget(values.site ? 'fork, ssh' : 'pool', agent);
  try {
    await agent.ok('up');
    agent.file(
      'many.sh',
      `#!/bin/sh\ni=0\nwhile [ $i -lt ${files} ]; do i=$((i + 1)); echo "line of file $i" >f$i.dat; done\ntouch made\nwhile [ ! -e "$1" ]; do sleep 0.1; done\n`,
      0o755,
    );
    const go = join(agent.dir, 'go');
    const used = new CpuByName((line, environment) =>
      line.includes(agent.dir) || environment.includes(agent.home)
        ? /central-manager|gridmanager|scheduler\/main|worker\.mjs|redis-server|jobmanager\.sh/.exec(line)?.[0]
        : undefined,
    );
    const began = performance.now();
    await agent.submit(
      `${target.resource ? `universe = grid\ngrid_resource = ${target.resource}\n` : ''}executable = many.sh\narguments = ${go}\nstream_results = *.dat\nlog = log\nqueue\n`,
    );
    const there = () => readdirSync(agent.work).filter((name) => /^f\d+\.dat$/.test(name)).length;
    await until('the first file', () => there() > 0 || undefined, 120_000);
    const first = performance.now();
    await until('all files', () => there() >= files || undefined, 1_800_000);
    const seconds = (performance.now() - first) / 1000;
    const cpu = [...used.end()].map(([name, time]) => `${name} ${time.toFixed(1)}`).join(', ');
    console.log(
      `| ${files} files while the job runs | ${seconds.toFixed(1)} s after the first | ${((first - began) / 1000).toFixed(1)} s until the first | ${cpu} |`,
    );
    agent.file('../go', '');
    if (!existsSync(go)) throw new Error(go);
    const ended = performance.now();
    await agent.ok('wait', '--timeout', '600', '1');
    console.log(`| to its end, all brought again whole | ${((performance.now() - ended) / 1000).toFixed(1)} s |`);
  } finally {
    await agent.end();
    await target.stop();
  }
}
