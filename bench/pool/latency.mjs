// From the return of a submit to the start of its program, in a pool that is idle and has already run a job:
//   node bench/pool/latency.mjs [JOBS], after `npm run build`.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const JOBS = Number(process.argv[2] ?? 15);
const cli = join(import.meta.dirname, '../../dist/bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), '[submit]\ndefault_site = "pool"\n[pool]\ncpus = 2\n');
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };

function gryphus(...args) {
  const { status, stderr } = spawnSync(process.execPath, [cli, ...args], { cwd: home, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`gryphus ${args.join(' ')}: ${stderr}`);
}

/** When the job with this number started, in Unix milliseconds. */
async function begun(number) {
  const file = join(home, `stamp.${number}`);
  for (;;) {
    const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    if (text !== '') return Number(BigInt(text) / 1000n) / 1000;
    await sleep(5);
  }
}

try {
  writeFileSync(join(home, 'stamp.sh'), '#!/bin/sh\ndate +%s%N > "$1.new" && mv "$1.new" "$1"\n', { mode: 0o755 });
  const waits = [];
  for (let number = 0; number <= JOBS; number++) {
    writeFileSync(join(home, 'job.sub'), `executable = stamp.sh\narguments = ${home}/stamp.${number}\nqueue\n`);
    gryphus('submit', '--terse', 'job.sub');
    const returned = performance.timeOrigin + performance.now();
    // The first one starts the central manager and the worker.
    if (number > 0) waits.push((await begun(number)) - returned);
    else await begun(number);
    await sleep(700);
  }
  waits.sort((a, b) => a - b);
  const [least, middle, most] = [waits[0], waits[Math.floor(waits.length / 2)], waits.at(-1)].map(Math.round);
  console.log(`from submit to start: ${middle} ms (median of ${JOBS}; ${least} to ${most})`);
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
