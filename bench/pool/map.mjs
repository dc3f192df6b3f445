// How many no-op tasks per second the pool runs on 8 slots, and what processor time each costs; compared with GNU
// parallel,
// task-spooler and xargs if they are installed. `node bench/pool/map.mjs [TASKS]`, after `npm run build`;
// `GRYPHUS_DIST`
// names another build for comparison.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const TASKS = Number(process.argv[2] ?? 5000);
const cli = join(import.meta.dirname, '../..', process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), '[pool]\ncpus = 8\n');
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };
const inputs = `${Array.from({ length: TASKS }, (_, i) => i).join('\n')}\n`;

/** For our processes: which one, and its clock ticks in seconds (Linux's USER_HZ is 100), own and of ended children. */
function ours() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
        const text = command + environment + readlinkSync(`/proc/${pid}/cwd`);
        if (!text.includes(home)) return [];
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const [utime, stime, childUtime, childStime] = stat
          .slice(stat.lastIndexOf(')') + 2)
          .split(' ')
          .slice(11, 15)
          .map(Number);
        return [{ command, own: (utime + stime) / 100, children: (childUtime + childStime) / 100 }];
      } catch {
        // It exited in the meantime.
        return [];
      }
    });
}

function processorSeconds() {
  const all = ours();
  const sum = (words, part) =>
    all.filter(({ command }) => command.includes(words)).reduce((total, one) => total + one[part], 0);
  return {
    centralManager: sum('central-manager-main', 'own'),
    worker: sum('worker.mjs', 'own'),
    shells: sum('gryphus-starter', 'own'),
    programs: sum('gryphus-starter', 'children'),
  };
}

/** Processor seconds of children that have ended. */
function childrenSeconds() {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ').map(Number);
  return (fields[13] + fields[14]) / 100;
}

function timed(name, command, args, input = inputs) {
  const [begun, before] = [performance.now(), childrenSeconds()];
  const { status, error } = spawnSync(command, args, { env, input, stdio: ['pipe', 'ignore', 'inherit'] });
  if (error?.code === 'ENOENT') return;
  const seconds = (performance.now() - begun) / 1000;
  const each = ((childrenSeconds() - before) / TASKS) * 1000;
  console.log(
    `${name}: ${TASKS} tasks in ${seconds.toFixed(2)} s, ${Math.round(TASKS / seconds)} a second, ` +
      `${each.toFixed(2)} ms of processor time each (status ${status})`,
  );
}

try {
  // What is slow only the first time is not measured.
  spawnSync(process.execPath, [cli, 'map', 'true', ':::', 'a', 'b', 'c', 'd'], { env, stdio: 'inherit' });
  const before = processorSeconds();
  timed('gryphus map', process.execPath, [cli, 'map', '--summary', 'true']);
  const after = processorSeconds();
  for (const part of Object.keys(before))
    console.log(`  ${part}: ${(((after[part] - before[part]) / TASKS) * 1000).toFixed(2)} ms of processor time a task`);
  // The upper bound for starting a program per task: eight shells that do nothing else.
  const loop = `i=0; while [ $i -lt ${Math.ceil(TASKS / 8)} ]; do /bin/true; i=$((i+1)); done`;
  timed('eight shells that loop over /bin/true', 'sh', ['-c', `for n in 1 2 3 4 5 6 7 8; do (${loop}) & done; wait`]);
  timed('GNU parallel -j8', 'parallel', ['-j8', 'true']);
  const spooler = { ...env, TS_SOCKET: join(home, 'ts'), TMPDIR: home };
  const script = `tsp -S 8; while read -r n; do tsp -n true "$n" >/dev/null; done; tsp -w; while tsp | grep -q -e queued -e running; do sleep 0.05; done; tsp -K`;
  const few = Math.min(TASKS, 1000);
  if (spawnSync('sh', ['-c', 'command -v tsp']).status === 0) {
    const begun = performance.now();
    spawnSync('sh', ['-c', script], { env: spooler, input: inputs.split('\n').slice(0, few).join('\n') });
    const seconds = (performance.now() - begun) / 1000;
    console.log(`task-spooler: ${few} tasks in ${seconds.toFixed(2)} s, ${Math.round(few / seconds)} a second`);
  }
  timed('xargs -P8', 'xargs', ['-P8', '-n1', 'true']);
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
