// The leverage of the pool, as `gryphus usage` reports it: the core seconds that jobs used for each processor second of
// our own daemons, with their start. 64 slots, and three times as many jobs, which only sleep.
// `node bench/pool/leverage.mjs [SECONDS [JOBS]]`, after `npm run build`; `GRYPHUS_DIST` names another build.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const SECONDS = Number(process.argv[2] ?? 60);
const JOBS = Number(process.argv[3] ?? 192);
const cli = join(import.meta.dirname, '../..', process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };
mkdirSync(env.GRYPHUS_HOME, { mode: 0o700 });
writeFileSync(join(env.GRYPHUS_HOME, 'config.toml'), '[pool]\ncpus = 64\nmemory = "64G"\n');

function gryphus(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { cwd: home, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`gryphus ${args.join(' ')}: ${stderr}`);
  return stdout;
}

try {
  gryphus('up');
  await sleep(5000);
  const job = `executable = /bin/sleep\narguments = ${SECONDS}\ntransfer_executable = false\nrequest_memory = 16\n`;
  writeFileSync(join(home, 'job.sub'), `${job}queue ${JOBS}\n`);
  gryphus('submit', '--wait', 'job.sub');
  // What the daemons used is written when they end.
  await sleep(3000);
  gryphus('down');
  gryphus('up');
  const { all, local } = JSON.parse(gryphus('usage', '--json'));
  const spent = local.map(({ daemon, seconds }) => `${daemon} ${seconds.toFixed(1)} s`).join(', ');
  console.log(`${all.jobs} jobs of ${SECONDS} s: leverage ${Math.round(all.leverage)} (${spent})`);
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
