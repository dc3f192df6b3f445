// How many no-op tasks a second the pool runs on 8 slots, and what processor time each costs the agent; beside it GNU
// parallel, task-spooler and xargs where they are installed. `node bench/pool/map.mjs [TASKS]`, after `npm run build`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TASKS = Number(process.argv[2] ?? 2000);
const cli = join(import.meta.dirname, '../../dist/bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), '[pool]\ncpus = 8\n');
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };
const inputs = `${Array.from({ length: TASKS }, (_, i) => i).join('\n')}\n`;

/** Clock ticks of a hundredth of a second (Linux's USER_HZ), own and of ended children. */
function processorSeconds(words) {
  let seconds = { own: 0, children: 0 };
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes(words) || !(environment.includes(home) || command.includes(home))) continue;
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      const fields = stat
        .slice(stat.lastIndexOf(')') + 2)
        .split(' ')
        .map(Number);
      seconds = {
        own: seconds.own + (fields[11] + fields[12]) / 100,
        children: seconds.children + (fields[13] + fields[14]) / 100,
      };
    } catch {
      // It ended meanwhile.
    }
  }
  return seconds;
}

function timed(name, command, args, input = inputs) {
  const begun = performance.now();
  const { status, error } = spawnSync(command, args, { env, input, stdio: ['pipe', 'ignore', 'inherit'] });
  if (error?.code === 'ENOENT') return;
  const seconds = (performance.now() - begun) / 1000;
  console.log(
    `${name}: ${TASKS} tasks in ${seconds.toFixed(2)} s, ${Math.round(TASKS / seconds)} a second (status ${status})`,
  );
}

try {
  spawnSync(process.execPath, [cli, 'map', 'true', ':::', 'a', 'b', 'c', 'd'], { env, stdio: 'inherit' });
  const before = { desk: processorSeconds('desk-main'), worker: processorSeconds('worker.mjs') };
  timed('gryphus map', process.execPath, [cli, 'map', '--summary', 'true']);
  for (const [name, words] of [
    ['desk', 'desk-main'],
    ['worker', 'worker.mjs'],
  ]) {
    const { own } = processorSeconds(words);
    console.log(`  ${name}: ${(((own - before[name].own) / TASKS) * 1000).toFixed(2)} ms of processor time a task`);
  }
  timed('GNU parallel -j8', 'parallel', ['-j8', 'true']);
  timed('xargs -P8', 'xargs', ['-P8', '-n1', 'true']);
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
