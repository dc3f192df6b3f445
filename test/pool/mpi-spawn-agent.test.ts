import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';
import { SLOW } from '../slow.ts';

const COMPILER = '/usr/bin/mpicc.openmpi';

/** Spawns four processes, which tell on which node each of them runs. */
const PARENT = `#include <mpi.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
  MPI_Comm children;
  int errors[4];
  char *words[] = {"-c", "cd \\"$_CONDOR_JOB_IWD\\" && exec ./child", NULL};
  MPI_Init(&argc, &argv);
  if (MPI_Comm_spawn("/bin/sh", words, 4, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, errors)) return 2;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int from = 0; rank == 0 && from < 4; from++) {
    char node[16];
    MPI_Recv(node, sizeof node, MPI_CHAR, from, 0, children, MPI_STATUS_IGNORE);
    printf("child %d on node %s\\n", from, node);
  }
  MPI_Comm_disconnect(&children);
  MPI_Finalize();
  return 0;
}
`;
const CHILD = `#include <mpi.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
  MPI_Comm parent;
  char node[16] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_get_parent(&parent);
  strncpy(node, getenv("_CONDOR_PROCNO"), 15);
  MPI_Send(node, 16, MPI_CHAR, 0, 0, parent);
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
  return 0;
}
`;

describe.skipIf(!SLOW || !existsSync(COMPILER))("MPI_Comm_spawn of Open MPI in the pool's parallel jobs", () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 8\nmemory = "8G"\n');
    await agent.ok('up');
  }, 120_000);
  afterAll(() => agent.end());

  it("starts processes on the job's own nodes, beyond those that were started first", async () => {
    for (const [name, text] of [
      ['parent', PARENT],
      ['child', CHILD],
    ] as const) {
      agent.file(`${name}.c`, text);
      execFileSync(COMPILER, ['-o', join(agent.work, name), join(agent.work, `${name}.c`)]);
    }
    agent.file('run.sh', `#!/bin/sh\nMPIRUN_OPTIONS='-n 2' exec "$GRYPHUS_LAUNCHERS/openmpiscript" ./parent\n`, 0o755);
    const cluster = await agent.submit(
      'universe = parallel\nmachine_count = 6\nrequest_memory = 50\nshould_transfer_files = yes\nexecutable = run.sh\n' +
        'transfer_input_files = parent, child\noutput = out.$(Node)\nerror = err.$(Node)\nqueue\n',
    );
    await agent.run(['wait', String(cluster), '--timeout', '120']);
    expect((await agent.ads(cluster))[0], agent.read('err.0')).toMatchObject({ JobStatus: 4, ExitCode: 0 });
    const lines = agent.read('out.0').trim().split('\n');
    expect(lines).toHaveLength(4);
    const nodes = lines.map((line) => Number(/ on node (\d)$/.exec(line)?.[1]));
    expect(new Set(nodes).size).toBe(4);
    // Nodes 0 and 1 have the parents: the children fill the free ones.
    expect(nodes.every((node) => node >= 2 && node < 6)).toBe(true);
  }, 180_000);
});
