// Measures the DAG module: node bench/dag/run.mjs [dist]. Each figure comes from its own process, for its own memory.
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const dist = resolve(process.env.GRYPHUS_DIST ?? 'dist');
const { loadDag, Engine, DEFAULT_SETTINGS } = await import(pathToFileURL(`${dist}/dag/api.js`).href);

/** `nodes` nodes, each with up to `degree` parents among those shortly before it, each with VARS and a RETRY. */
function randomDag(nodes, degree) {
  const lines = [];
  let seed = 1;
  const random = (n) => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed % n;
  };
  for (let i = 0; i < nodes; i++) {
    lines.push(`JOB node${i} job.sub`, `VARS node${i} number="${i}"`, `RETRY node${i} 2`);
    const parents = new Set();
    for (let k = 0; k < (i > 0 ? degree : 0); k++) parents.add(i - 1 - random(Math.min(i, 1000)));
    for (const parent of parents) lines.push(`PARENT node${parent} CHILD node${i}`);
  }
  return lines.join('\n');
}

/** 50 chains of 10 between a source and a sink: the DAG of 500 nodes with which the real one was measured. */
function chainAndFan() {
  const lines = [];
  for (let c = 0; c < 50; c++) {
    for (let i = 0; i < 10; i++) {
      lines.push(`JOB c${c}_${i} noop.sub NOOP`);
      if (i > 0) lines.push(`PARENT c${c}_${i - 1} CHILD c${c}_${i}`);
    }
  }
  return lines.join('\n');
}

/** 10 full layers of 50. */
function layers() {
  const lines = [];
  const names = (l) => Array.from({ length: 50 }, (_, i) => `l${l}_${i}`);
  for (let l = 0; l < 10; l++) {
    for (const name of names(l)) lines.push(`JOB ${name} noop.sub NOOP`);
    if (l > 0) lines.push(`PARENT ${names(l - 1).join(' ')} CHILD ${names(l).join(' ')}`);
  }
  return lines.join('\n');
}

/** Wall-clock and processor seconds: on a shared machine, only the second tells how fast it is. */
function timed(work) {
  const begin = performance.now();
  const cpu = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(cpu);
  return { result, seconds: (performance.now() - begin) / 1000, cpuSeconds: (user + system) / 1e6 };
}

const limits = { maxJobs: 0, maxIdle: 1000, maxPre: 20, maxPost: 20, maxHold: 20 };

function start(text) {
  const source = { read: () => text, absolute: (path) => path };
  const loaded = loadDag(['x.dag'], source);
  const errors = loaded.problems.filter((p) => p.severity === 'error');
  if (errors.length > 0) throw new Error(JSON.stringify(errors[0]));
  const engine = new Engine(loaded.dag, { settings: { ...DEFAULT_SETTINGS, ...loaded.settings }, limits, dagmanId: 1 });
  const commands = engine.start(Date.now());
  return { loaded, engine, commands };
}

/** Runs all nodes: every submit is answered, and every job succeeds. Processor time per event, in microseconds. */
function runAll({ engine, commands }) {
  let cluster = 0;
  let events = 0;
  let queue = commands.filter((c) => c.do === 'submit').map((c) => c.node);
  const cpu = process.cpuUsage();
  while (engine.core.exitCode === undefined && queue.length > 0) {
    const batch = queue.splice(0, 100);
    const step = [];
    for (const node of batch) {
      const id = ++cluster;
      step.push({ is: 'submitted', node, cluster: id, procs: 1 });
      step.push({ is: 'job', cluster: id, proc: 0, change: { what: 'execute' } });
      step.push({ is: 'job', cluster: id, proc: 0, change: { what: 'terminated', end: { code: 0 } } });
    }
    events += step.length;
    for (const command of engine.step(step, 0)) if (command.do === 'submit') queue.push(command.node);
  }
  const { user, system } = process.cpuUsage(cpu);
  return { exit: engine.core.exitCode, events, cpuMicrosecondsPerEvent: (user + system) / events };
}

const CASES = {
  'parse and start, 100,000 nodes, 500,000 edges': () => {
    const text = randomDag(100_000, 5);
    globalThis.gc?.();
    const { result, ...times } = timed(() => start(text));
    return { ...times, edges: result.loaded.dag.edges.count };
  },
  'parse and start, 1,000,000 nodes, 2,000,000 edges': () => {
    const text = randomDag(1_000_000, 2);
    const { result, ...times } = timed(() => start(text));
    return { ...times, edges: result.loaded.dag.edges.count };
  },
  'one event, 1,000 nodes': () => runAll(start(randomDag(1_000, 5))),
  'one event, 100,000 nodes': () => runAll(start(randomDag(100_000, 5))),
  '500 NOOP nodes, 50 chains of 10': () => {
    const text = chainAndFan();
    const { result, ...times } = timed(() => start(text));
    return { ...times, exit: result.engine.core.exitCode };
  },
  '500 NOOP nodes, 10 full layers of 50': () => {
    const text = layers();
    const { result, ...times } = timed(() => start(text));
    return { ...times, exit: result.engine.core.exitCode };
  },
};

const only = process.argv[2];
if (only !== undefined && Object.hasOwn(CASES, only)) {
  const result = CASES[only]();
  console.log(JSON.stringify({ ...result, maxRssMB: Math.round(process.resourceUsage().maxRSS / 1024) }));
} else {
  for (const name of Object.keys(CASES)) {
    const args = [
      '--expose-gc',
      '--max-old-space-size=4096',
      '--max-semi-space-size=64',
      fileURLToPath(import.meta.url),
      name,
    ];
    const ran = spawnSync(process.execPath, args, { encoding: 'utf8', env: process.env });
    console.log(`${name}: ${ran.status === 0 ? ran.stdout.trim() : ran.stderr.trim().slice(-300)}`);
  }
}
