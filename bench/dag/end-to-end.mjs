// 500 nodes, 50 chains of 10 as in DAGMan's measurement, through the command line and the queue of a whole agent in a
// scratch directory: NOOP nodes, and real /bin/true in the scheduler universe, in the pool and at the local fork site.
// Needs a build; GRYPHUS_DIST names another one. Names as arguments run only these.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cli = join(root, process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const dir = mkdtempSync('/tmp/gry-bench-');
const env = { ...process.env, HOME: dir, GRYPHUS_HOME: join(dir, 'g') };
delete env.REDIS_URL;

function gryphus(cwd, ...args) {
  const began = performance.now();
  const { status, stderr } = spawnSync(process.execPath, [cli, ...args], { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`gryphus ${args.join(' ')} ended with ${status}: ${stderr}`);
  return (performance.now() - began) / 1000;
}

/** Seconds between the first and the last line of the DAG manager's log, as in DAGMan's figures. */
function inManager(file) {
  const times = readFileSync(file, 'utf8').trim().split('\n');
  const at = (line) => Date.parse(`20${line.slice(6, 8)}-${line.slice(0, 2)}-${line.slice(3, 5)}T${line.slice(9, 17)}`);
  return (at(times.at(-1)) - at(times[0])) / 1000;
}

function chains(noop) {
  const lines = [];
  for (let c = 0; c < 50; c++) {
    for (let i = 0; i < 10; i++) {
      lines.push(`JOB C${c}_${i} node.sub${noop ? ' NOOP' : ''}`);
      if (i > 0) lines.push(`PARENT C${c}_${i - 1} CHILD C${c}_${i}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

try {
  mkdirSync(env.GRYPHUS_HOME);
  gryphus(dir, 'up');
  const vanilla = 'executable = /bin/true\nqueue\n';
  const local = 'universe = grid\ngrid_resource = batch fork local\ntransfer_executable = false\n';
  const wanted = process.argv.slice(2);
  for (const [name, noop, node] of [
    ['noop', true, vanilla],
    ['fork', false, `universe = scheduler\n${vanilla}`],
    ['pool', false, vanilla],
    ['local', false, `${local}${vanilla}`],
  ]) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const work = join(dir, name);
    mkdirSync(work);
    writeFileSync(join(work, 'x.dag'), chains(noop));
    writeFileSync(join(work, 'node.sub'), node);
    const seconds = gryphus(work, 'dag', 'submit', '--wait', 'x.dag');
    const own = inManager(join(work, 'x.dag.dagman.out'));
    process.stdout.write(
      `500 nodes, 50 chains of 10, ${name}: ${seconds.toFixed(1)} s in all, ${own} s in the manager\n`,
    );
  }
} finally {
  spawnSync(process.execPath, [cli, 'down'], { cwd: dir, env });
  rmSync(dir, { recursive: true, force: true });
}
