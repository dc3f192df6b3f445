// From the start of `gryphus submit` to the end of MPI_Init on all of 8 ranks, which are the nodes of a parallel job on 8
// one-core slots of an idle pool, beside plain `mpiexec -n 8` of the same program, in turns:
//   node bench/pool/mpi.mjs [ROUNDS] [MPICH|'Open MPI'], after `npm run build`. `GRYPHUS_DIST` names another build.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const ROUNDS = Number(process.argv[2] ?? 5);
const ONLY = process.argv[3];
const RANKS = 8;
const cli = join(import.meta.dirname, '../..', process.env.GRYPHUS_DIST ?? 'dist', 'bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), `[pool]\ncpus = ${RANKS}\nmemory = "8G"\n`);
const env = {
  ...process.env,
  GRYPHUS_HOME: join(home, 'g'),
  OMPI_ALLOW_RUN_AS_ROOT: '1',
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1',
};

/** Prints when the first rank's program began, when the last rank's MPI_Init was done, and the sum around the ring. */
const RING = `#include <mpi.h>
#include <stdio.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int argc, char **argv) {
  int rank, size, sum = 0;
  double began = now(), done, first, last;
  MPI_Init(&argc, &argv);
  done = now();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0) MPI_Recv(&sum, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum += rank;
  MPI_Send(&sum, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&sum, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Reduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&done, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.6f %.6f %d\\n", first, last, sum);
  MPI_Finalize();
  return 0;
}
`;
const MPI = {
  MPICH: { compiler: 'mpicc.mpich', script: 'mpichscript', plain: ['mpiexec.mpich', '-n', `${RANKS}`] },
  'Open MPI': {
    compiler: 'mpicc.openmpi',
    script: 'openmpiscript',
    plain: ['mpirun.openmpi', '-n', `${RANKS}`, '--oversubscribe', '--bind-to', 'none'],
  },
};

function run(program, ...args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: home, env, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}${stdout}`);
  return stdout;
}
const gryphus = (...args) => run(process.execPath, cli, ...args);
const now = () => (performance.timeOrigin + performance.now()) / 1000;

/** Seconds from `begun` to the steps in a line of the ring's. */
function read(line, begun) {
  const [first, last, sum] = line.trim().split(' ').map(Number);
  if (sum !== (RANKS * (RANKS - 1)) / 2) throw new Error(`the ring's sum is wrong: ${line}`);
  return { programs: first - begun, done: last - begun };
}

function plain({ plain: [program, ...args] }) {
  const begun = now();
  return read(run(program, ...args, './ring'), begun);
}

function inPool({ script }) {
  writeFileSync(
    join(home, 'ring.sh'),
    `#!/bin/sh\n[ $_CONDOR_PROCNO = 0 ] && date +%s.%N >${home}/node0\nexec "$GRYPHUS_LAUNCHERS/${script}" ./ring\n`,
    { mode: 0o755 },
  );
  writeFileSync(
    join(home, 'job.sub'),
    `universe = parallel
machine_count = ${RANKS}
request_memory = 200
executable = ring.sh
transfer_input_files = ring
should_transfer_files = yes
output = ring.out.$(Node)
error = ring.err.$(Node)
queue
`,
  );
  const begun = now();
  const cluster = gryphus('submit', '--terse', 'job.sub').split('.')[0];
  const submitted = now() - begun;
  const waited = spawnSync(process.execPath, [cli, 'wait', cluster, '--timeout', '60'], { env, encoding: 'utf8' });
  const line = readFileSync(join(home, 'ring.out.0'), 'utf8');
  if (waited.status !== 0) throw new Error(`${waited.stderr}${readFileSync(join(home, 'ring.err.0'), 'utf8')}`);
  return { submitted, node0: Number(readFileSync(join(home, 'node0'), 'utf8')) - begun, ...read(line, begun) };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}
const seconds = (rounds, step) => {
  const values = rounds.map((one) => one[step]);
  return `${median(values).toFixed(2)} s (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
};

try {
  writeFileSync(join(home, 'ring.c'), RING);
  gryphus('up');
  for (const [name, mpi] of Object.entries(MPI)) {
    if (ONLY !== undefined && name !== ONLY) continue;
    run(mpi.compiler, '-o', 'ring', 'ring.c');
    const ours = [];
    const theirs = [];
    // The first round starts the central manager and the worker, and reads both launchers from the disk.
    for (let round = 0; round <= ROUNDS; round++) {
      const [there, here] = [plain(mpi), inPool(mpi)];
      if (round > 0) {
        theirs.push(there);
        ours.push(here);
      }
      await sleep(1000);
    }
    const ratio = median(ours.map(({ done }) => done)) / median(theirs.map(({ done }) => done));
    console.log(`${name}, medians of ${ROUNDS} (least to most), load ${loadavg()[0].toFixed(1)}:`);
    console.log(`  submit to MPI_Init done: ${seconds(ours, 'done')}`);
    console.log(`  plain launcher to MPI_Init done: ${seconds(theirs, 'done')}; ratio ${ratio.toFixed(1)}`);
    for (const [step, words] of [
      ['submitted', 'the submit returned'],
      ['node0', 'node 0 started'],
      ['programs', "the first rank's program started"],
    ])
      console.log(`  until ${words}: ${seconds(ours, step)}`);
  }
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
