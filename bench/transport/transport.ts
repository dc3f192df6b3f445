import { execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openTransport } from '../../src/transport/open-transport.ts';
import { startSshd } from '../../test/sites/sshd.ts';

/*
 * Commands a second and MiB a second over one connection, side by side with the system's ssh over a ControlMaster and
 * with scp, in one run against a private sshd on loopback.
 */

const MIB = 100;
const run = promisify(execFile);

/** Median of three measurements, in seconds. */
async function seconds(work: () => Promise<unknown>): Promise<number> {
  const taken: number[] = [];
  for (let round = 0; round < 3; round++) {
    const start = process.hrtime.bigint();
    await work();
    taken.push(Number(process.hrtime.bigint() - start) / 1e9);
  }
  return taken.sort((a, b) => a - b)[1] ?? 0;
}

async function times(count: number, atOnce: number, work: () => Promise<unknown>): Promise<void> {
  let left = count;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) await work();
    }),
  );
}

const sshd = await startSshd();
const file = join(sshd.configDir, 'data');
const there = join(sshd.home, 'data');
writeFileSync(file, randomBytes(MIB * 1024 * 1024));

const results: Record<string, Record<string, number>> = {};
const control = join(sshd.configDir, 'c');
const master = spawn('ssh', ['-F', sshd.sshConfigFile, '-M', '-N', '-S', control, 'site'], { stdio: 'ignore' });
while (!existsSync(control)) await delay(10);
const plain = ['-F', sshd.sshConfigFile, '-o', `ControlPath=${control}`];
results['ssh -M, scp'] = {
  'exec/s, 1 at a time': 100 / (await seconds(() => times(100, 1, () => run('ssh', [...plain, 'site', 'true'])))),
  'exec/s, 8 at a time': 200 / (await seconds(() => times(200, 8, () => run('ssh', [...plain, 'site', 'true'])))),
  'put MiB/s': MIB / (await seconds(() => run('scp', ['-q', ...plain, file, `site:${there}`]))),
  'get MiB/s': MIB / (await seconds(() => run('scp', ['-q', ...plain, `site:${there}`, `${file}.back`]))),
};
master.kill();

for (const kind of ['ssh2', 'openssh'] as const) {
  const transport = await openTransport('site', { transport: kind, sshConfigFile: sshd.sshConfigFile });
  await transport.run('true');
  results[kind] = {
    'exec/s, 1 at a time': 100 / (await seconds(() => times(100, 1, () => transport.run('true')))),
    'exec/s, 8 at a time': 200 / (await seconds(() => times(200, 8, () => transport.run('true')))),
    'put MiB/s': MIB / (await seconds(() => transport.put(file, there))),
    'get MiB/s': MIB / (await seconds(() => transport.get(there, `${file}.back`))),
  };
  execFileSync('cmp', [file, `${file}.back`]);
  rmSync(`${file}.back`);
  await transport.close();
}
await sshd.stop();

const base = results['ssh -M, scp'] ?? {};
if (process.argv.includes('--json')) {
  process.stdout.write(`${JSON.stringify(results, undefined, 2)}\n`);
} else {
  const columns = Object.keys(base);
  process.stdout.write(`| way | ${columns.join(' | ')} |\n| --- |${' ---: |'.repeat(columns.length)}\n`);
  for (const [way, figures] of Object.entries(results)) {
    const cells = columns.map((column) => {
      const figure = figures[column] ?? 0;
      return `${figure.toFixed(0)} (${(figure / (base[column] ?? 1)).toFixed(1)}×)`;
    });
    process.stdout.write(`| ${way} | ${cells.join(' | ')} |\n`);
  }
}
