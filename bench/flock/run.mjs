// What a flock costs: a borrowed job beside a local one, its results and inputs, and gateways of pools that lend each other nothing at the moment.
//   node bench/flock/run.mjs [--pools 9] [--seconds 120] [--pairs 5] [--loops 3000000] [--results 100] [--settle 15], after `npm run build`; as root,
//   or with newuidmap. `--results`: in MB. `--settle`: seconds before idle gateways are measured; V8 compiles for the first minutes.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    pools: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '120' },
    pairs: { type: 'string', default: '5' },
    loops: { type: 'string', default: '3000000' },
    results: { type: 'string', default: '100' },
    settle: { type: 'string', default: '15' },
  },
});
const { pools: howMany, seconds, pairs, results, settle, loops } = values;
const [POOLS, SECONDS, PAIRS, RESULTS, SETTLE] = [howMany, seconds, pairs, results, settle].map(Number);
/** Iterations of a shell's loop in a job of the pairs: some seconds. */
const WORK = Number(loops);
const cli = join(import.meta.dirname, '../../dist/bin/gryphus.js');
const dir = mkdtempSync('/var/tmp/gryphus-bench-');
spawnSync('chmod', ['755', dir]);

class Pool {
  constructor(name, port) {
    this.name = name;
    this.port = port;
    this.home = join(dir, name);
    mkdirSync(this.home, { mode: 0o700 });
    this.ok('config', 'pool.cpus', '1');
    // Not that of other agents on this machine, which tidy it.
    this.ok('config', 'pool.execute', join(dir, `${name}-execute`));
    if (port !== undefined) this.ok('config', 'flock.listen', `127.0.0.1:${port}`);
  }

  ok(...words) {
    const env = { ...process.env, GRYPHUS_HOME: this.home };
    const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...words], {
      cwd: dir,
      env,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`gryphus ${words.join(' ')} in ${this.name}: ${stderr}`);
    return stdout;
  }

  partners() {
    return JSON.parse(this.ok('flock', 'list', '--json')).flatMap(({ status }) => status ?? []);
  }

  /** The pool's daemons: what they are, and their processes. */
  daemons() {
    return readdirSync('/proc').flatMap((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`GRYPHUS_HOME=${this.home}`)) return [];
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        const name = /worker\.mjs|[a-z-]+(\/main)?\.(js|ts)(?!on)/.exec(line)?.[0];
        return name === undefined ? [] : [{ name, pid: Number(pid) }];
      } catch {
        return [];
      }
    });
  }

  /** The gateway's process. */
  get gateway() {
    return JSON.parse(readFileSync(join(this.home, 'state/flock/gateway.pid'), 'utf8')).pid;
  }
}

/** `lender` gives machines to `borrower`, and the other way round. */
function agree(lender, borrower) {
  const key = join(dir, `${lender.name}-${borrower.name}.key`);
  lender.ok('flock', 'add', borrower.name, '--from', '--to', '--new-key', key);
  borrower.ok('flock', 'add', lender.name, '--to', '--from', '--url', `127.0.0.1:${lender.port}`, '--key', key);
}

/** A line to a port that takes one connection and no other. */
const LINE = `const { connect, createServer } = require('node:net');
const line = createServer((socket) => {
  line.close();
  const onward = connect(process.argv[1], '127.0.0.1');
  socket.pipe(onward).pipe(socket);
  for (const one of [socket, onward]) one.on('error', () => undefined);
}).listen(process.argv[2], '127.0.0.1');`;

/** A pool lends to the borrower, and after its gateway's link neither can dial the other. */
async function hide(lender, borrower) {
  const port = await freePort();
  const line = spawn(process.execPath, ['-e', LINE, String(borrower.port), String(port)], { stdio: 'inherit' });
  const key = join(dir, `${lender.name}-${borrower.name}.key`);
  borrower.ok('flock', 'add', lender.name, '--to', '--new-key', key);
  lender.ok('flock', 'add', borrower.name, '--from', '--url', `127.0.0.1:${port}`, '--key', key);
  return line;
}

async function until(what, done) {
  for (let turn = 0; !done(); turn++) {
    if (turn > 120) throw new Error(`waited in vain for ${what}`);
    await sleep(1000);
  }
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** CPU seconds of a process so far. */
function cpu(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Bytes that these processes have sent over connections of 127.0.0.1, retransmissions not counted. */
function sent(pids) {
  const { stdout } = spawnSync('ss', ['-Htinp', 'state', 'established', 'src', '127.0.0.1'], { encoding: 'utf8' });
  let bytes = 0;
  const lines = stdout.split('\n');
  for (let at = 0; at + 1 < lines.length; at += 2)
    if (pids.some((pid) => lines[at].includes(`pid=${pid},`)))
      bytes += Number(/bytes_acked:(\d+)/.exec(lines[at + 1])?.[1] ?? 0);
  return bytes;
}

/** Runs the same work once, and says how long the program itself took, in milliseconds. */
function once(pool, requirements, name) {
  const script = [
    '#!/bin/sh',
    'a=$(date +%s%N); i=0',
    `while [ $i -lt ${WORK} ]; do i=$((i + 1)); done`,
    'b=$(date +%s%N); echo $(((b - a) / 1000000))',
  ];
  writeFileSync(join(dir, 'work.sh'), `${script.join('\n')}\n`, { mode: 0o755 });
  const out = join(dir, `${name}.out`);
  writeFileSync(
    join(dir, 'work.sub'),
    `executable = work.sh\noutput = ${out}\nrequirements = ${requirements}\nqueue\n`,
  );
  pool.ok('submit', '--wait', 'work.sub');
  return Number(readFileSync(out, 'utf8'));
}

/** CPU seconds that the daemons of these pools use for a job with an input of RESULTS MB. */
function ofInputs(pool, requirements, pools) {
  const name = `large-input.${Math.random()}`;
  writeFileSync(join(dir, name), randomBytes(RESULTS * 1e6));
  writeFileSync(
    join(dir, 'input.sub'),
    `executable = /bin/true\ntransfer_executable = false\ntransfer_input_files = ${name}\nrequirements = ${requirements}\nqueue\n`,
  );
  return used(pools, () => pool.ok('submit', '--wait', 'input.sub'));
}

/** CPU seconds that the daemons of these pools use for a job that leaves a file of RESULTS MB, each of them by its name. */
function ofResults(pool, requirements, pools) {
  const bytes = RESULTS * 1e6;
  writeFileSync(join(dir, 'large.sh'), `#!/bin/sh\nhead -c ${bytes} /dev/urandom >large.${pool.name}\n`, {
    mode: 0o755,
  });
  writeFileSync(
    join(dir, 'large.sub'),
    `executable = large.sh\ntransfer_output_files = large.${pool.name}\nrequirements = ${requirements}\nqueue\n`,
  );
  const said = used(pools, () => pool.ok('submit', '--wait', 'large.sub'));
  if (statSync(join(dir, `large.${pool.name}`)).size !== bytes) throw new Error('the results are not whole');
  return said;
}

/** What the daemons of these pools use while something is done. */
function used(pools, work) {
  const of = () =>
    new Map(pools.flatMap((one) => one.daemons().map(({ name, pid }) => [`${one.name} ${name} ${pid}`, cpu(pid)])));
  const before = of();
  const begun = performance.now();
  work();
  const seconds = (performance.now() - begun) / 1000;
  const all = [...of()].map(([name, now]) => [name, now - (before.get(name) ?? 0)]);
  const sum = all.reduce((so, [, one]) => so + one, 0);
  for (const [name, one] of all) if (one > 0.05) console.log(`  ${name}: ${one.toFixed(2)} s`);
  return `${sum.toFixed(2)} s of CPU, ${seconds.toFixed(1)} s`;
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const pools = [];
try {
  for (let n = 0; n < POOLS; n++) pools.push(new Pool(`pool${n + 1}`, await freePort()));
  for (const [n, lender] of pools.entries()) for (const borrower of pools.slice(n + 1)) agree(lender, borrower);
  for (const pool of pools) pool.ok('up');
  await until('all links', () =>
    pools.every(
      (pool) => pool.partners().filter(({ connected, machines }) => connected && machines > 0).length === POOLS - 1,
    ),
  );

  const [first, second] = pools;
  const ratios = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    const local = once(first, 'FlockPool =?= undefined', 'local');
    const borrowed = once(first, `FlockPool == "${second.name}"`, 'borrowed');
    ratios.push(borrowed / local);
    console.log(`local ${local} ms, borrowed ${borrowed} ms`);
  }
  if (PAIRS > 0) console.log(`borrowed beside local: ${median(ratios).toFixed(3)} (median of ${PAIRS})`);

  if (RESULTS > 0) {
    console.log(`${RESULTS} MB of results, local: ${ofResults(first, 'FlockPool =?= undefined', [first])}`);
    const there = ofResults(first, `FlockPool == "${second.name}"`, [first, second]);
    console.log(`${RESULTS} MB of results, borrowed, the lender can dial: ${there}`);
    // The first pool listens to the second, which it cannot dial.
    const met = ofResults(second, `FlockPool == "${first.name}"`, [first, second]);
    console.log(`${RESULTS} MB of results, borrowed, only the borrower can dial: ${met}`);
    const hidden = new Pool('hidden');
    pools.push(hidden);
    const line = await hide(hidden, first);
    hidden.ok('up');
    await until('the hidden pool', () =>
      first.partners().some(({ name, machines }) => name === 'hidden' && machines > 0),
    );
    const through = ofResults(first, 'FlockPool == "hidden"', [first, hidden]);
    console.log(`${RESULTS} MB of results, borrowed, by the gateways: ${through}`);
    console.log(`${RESULTS} MB of inputs, local: ${ofInputs(first, 'FlockPool =?= undefined', [first])}`);
    const given = ofInputs(first, `FlockPool == "${second.name}"`, [first, second]);
    console.log(`${RESULTS} MB of inputs, borrowed, the lender can dial: ${given}`);
    const brought = ofInputs(second, `FlockPool == "${first.name}"`, [first, second]);
    console.log(`${RESULTS} MB of inputs, borrowed, only the borrower can dial: ${brought}`);
    const sent = ofInputs(first, 'FlockPool == "hidden"', [first, hidden]);
    console.log(`${RESULTS} MB of inputs, borrowed, by the gateways: ${sent}`);
    hidden.ok('down');
    line.kill();
    pools.pop();
  }

  await sleep(SETTLE * 1000);
  const pids = pools.map(({ gateway }) => gateway);
  const before = { cpu: pids.map(cpu), bytes: sent(pids) };
  await sleep(SECONDS * 1000);
  const used = pids.map((pid, n) => cpu(pid) - before.cpu[n]);
  const links = (POOLS * (POOLS - 1)) / 2;
  const perLink = (sent(pids) - before.bytes) / links / SECONDS;
  const percent = (used.reduce((sum, one) => sum + one, 0) / POOLS / SECONDS) * 100;
  console.log(`an idle gateway with ${POOLS - 1} partners: ${percent.toFixed(3)} % of a core`);
  console.log(`a link with nothing to say: ${perLink.toFixed(1)} bytes a second, both ways together`);
} finally {
  for (const pool of pools)
    spawnSync(process.execPath, [cli, 'down'], { env: { ...process.env, GRYPHUS_HOME: pool.home } });
  rmSync(dir, { recursive: true, force: true });
}
