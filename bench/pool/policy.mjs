// What a policy costs the worker that evaluates it, with all sources of signs of an owner on, without a job and with two:
// first the processor time of one evaluation and of one look at the sources, then that of a whole worker under `always`,
// which needs none of that, and under `desktop` and `hunter`.
// `node bench/pool/policy.mjs [SECONDS [ROUNDS]]`, after `npm run build`; SECONDS for each of the six. `GRYPHUS_DIST` names
// another build.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bundled } from '../bundle.mjs';

const SECONDS = Number(process.argv[2] ?? 15);
const ROUNDS = Number(process.argv[3] ?? 4);
const POLICIES = ['always', 'desktop', 'hunter'];
/** Whatever happens on this machine, its owner counts as absent. */
const ABSENT =
  '[pool.attributes]\nStartIdleTime = -1\nKeyboardBusy = "KeyboardIdle < 0"\nHighLoad = 1000.0\nBackgroundLoad = 1000.0\n';

/** Other work on the machine only adds to it. */
const least = (values) => Math.min(...values);
const percent = (part) => `${(part * 100).toFixed(3)} %`;

const cli = join(import.meta.dirname, '../..', process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };
mkdirSync(env.GRYPHUS_HOME, { mode: 0o700 });

const configure = (policy) =>
  writeFileSync(join(env.GRYPHUS_HOME, 'config.toml'), `[pool]\ncpus = 2\npolicy = "${policy}"\n${ABSENT}`);

function gryphus(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { cwd: home, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`gryphus ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** Processor seconds of the worker, by the scheduler's own account (proc_pid_schedstat). */
function used() {
  const { pid } = JSON.parse(readFileSync(join(env.GRYPHUS_HOME, 'state/pool/worker/worker.pid'), 'utf8'));
  const statOf = (task) => readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8');
  const ns = readdirSync(`/proc/${pid}/task`).map((task) => Number(statOf(task).split(' ')[0]));
  return ns.reduce((sum, one) => sum + one, 0) / 1e9;
}

/** The part of a core that it takes in this time. */
async function share() {
  const [before, at] = [used(), performance.now()];
  await sleep(SECONDS * 1000);
  return ((used() - before) * 1000) / (performance.now() - at);
}

async function round(results) {
  for (const policy of POLICIES) {
    configure(policy);
    await sleep(3000);
    results.get(policy).push(await share());
  }
}

/** The worker evaluates every 5 s, and looks at the sources in each other second while a job runs. */
await bundled(new URL('policy.ts', import.meta.url), ({ costOf }) => {
  for (const policy of POLICIES.slice(1))
    for (const jobs of [0, 2]) {
      const { evaluation, glance } = costOf(policy, jobs, 1000);
      const part = (evaluation + (jobs > 0 ? 4 * glance : 0)) / 5000;
      const ms = `evaluation ${evaluation.toFixed(2)} ms${jobs > 0 ? `, look ${glance.toFixed(2)} ms` : ''}`;
      console.log(`${policy}, ${jobs} jobs: ${ms}: ${percent(part)} of a core`);
    }
});

try {
  configure('always');
  gryphus('up');
  await sleep(15_000);
  for (const jobs of [0, 2]) {
    if (jobs > 0) {
      writeFileSync(join(home, 'job.sub'), `executable = /bin/sleep\narguments = 100000\nqueue ${jobs}\n`);
      gryphus('submit', '--terse', 'job.sub');
      while (gryphus('q', '--json', '--constraint', 'JobStatus == 2').split('"ClusterId"').length <= jobs)
        await sleep(500);
      await sleep(3000);
    }
    const results = new Map(POLICIES.map((policy) => [policy, []]));
    for (let n = 0; n < ROUNDS; n++) await round(results);
    const base = least(results.get('always'));
    console.log(`${jobs} jobs: the worker takes ${percent(base)} of a core under always`);
    for (const policy of POLICIES.slice(1)) {
      const found = least(results.get(policy));
      console.log(`  ${policy}: ${percent(found)}; the policy: ${percent(found - base)}`);
    }
  }
  gryphus('rm', '--all');
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
