// From the start of a submit to the end of MPI_Init on 8 one-core slots of an idle pool, and its parts:
//   node bench/pool/mpi.mjs [RUNS], after `npm run build`; needs mpicc.mpich and mpicc.openmpi.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const RUNS = Number(process.argv[2] ?? 5);
const NODES = 8;
const LONGEST_MS = 60_000;
const cli = join(import.meta.dirname, '../../dist/bin/gryphus.js');
const home = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
mkdirSync(join(home, 'g'), { mode: 0o700 });
writeFileSync(join(home, 'g/config.toml'), `[pool]\ncpus = ${NODES}\nmemory = "8G"\n`);
const env = { ...process.env, GRYPHUS_HOME: join(home, 'g') };

function gryphus(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], { cwd: home, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`gryphus ${args.join(' ')}: ${stderr}`);
  return stdout.trim();
}

/** What `date +%s%N` wrote there, in Unix milliseconds. */
async function stamp(name) {
  const file = join(home, name);
  const until = performance.now() + LONGEST_MS;
  while (performance.now() < until) {
    const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    if (/^\d{19}$/.test(text)) return Number(BigInt(text) / 1000n) / 1000;
    await sleep(5);
  }
  throw new Error(
    `no ${name} within ${LONGEST_MS / 1000} s: ${existsSync(join(home, 'err.0')) ? readFileSync(join(home, 'err.0'), 'utf8') : ''}`,
  );
}

const PROGRAM = `#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv) {
  int rank;
  struct timespec now;
  MPI_Init(&argc, &argv);
  clock_gettime(CLOCK_REALTIME, &now);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    FILE *file = fopen(argv[1], "w");
    fprintf(file, "%lld%09ld\\n", (long long)now.tv_sec, now.tv_nsec);
    fclose(file);
  }
  MPI_Finalize();
  return 0;
}
`;

const median = (all) => Math.round([...all].sort((a, b) => a - b)[Math.floor(all.length / 2)]);

try {
  writeFileSync(join(home, 'init.c'), PROGRAM);
  gryphus('up');
  for (const [mpi, script] of [
    ['mpich', 'mpichscript'],
    ['openmpi', 'openmpiscript'],
  ]) {
    execFileSync(`mpicc.${mpi}`, ['-o', join(home, 'init'), join(home, 'init.c')]);
    const parts = { submit: [], start: [], launch: [], whole: [] };
    // The first run starts the central manager and the worker.
    for (let run = 0; run <= RUNS; run++) {
      const name = `${mpi}.${run}`;
      writeFileSync(
        join(home, 'job.sh'),
        `#!/bin/sh\ndate +%s%N >${home}/start.${name}.$_CONDOR_PROCNO\nexec "$GRYPHUS_LAUNCHERS/${script}" ./init ${home}/init.${name}\n`,
        { mode: 0o755 },
      );
      writeFileSync(
        join(home, 'job.sub'),
        `universe = parallel\nmachine_count = ${NODES}\nrequest_memory = 200\nexecutable = job.sh\ntransfer_input_files = init\nshould_transfer_files = yes\nerror = err.$(Node)\nqueue\n`,
      );
      const began = performance.timeOrigin + performance.now();
      const cluster = gryphus('submit', '--terse', 'job.sub').split('.')[0];
      const returned = performance.timeOrigin + performance.now();
      const starts = [];
      for (let node = 0; node < NODES; node++) starts.push(await stamp(`start.${name}.${node}`));
      const done = await stamp(`init.${name}`);
      gryphus('wait', '--timeout', '60', cluster);
      if (run === 0) continue;
      const started = Math.max(...starts);
      parts.submit.push(returned - began);
      parts.start.push(started - returned);
      parts.launch.push(done - started);
      parts.whole.push(done - began);
    }
    const { submit, start, launch, whole } = parts;
    console.log(
      `${mpi}: ${median(whole)} ms (median of ${RUNS}; ${Math.round(Math.min(...whole))} to ${Math.round(Math.max(...whole))}): submit ${median(submit)}, all nodes started ${median(start)}, MPI_Init ${median(launch)}; load ${loadavg()[0].toFixed(1)}`,
    );
  }
} finally {
  spawnSync(process.execPath, [cli, 'down'], { env, stdio: 'ignore' });
  rmSync(home, { recursive: true, force: true });
}
