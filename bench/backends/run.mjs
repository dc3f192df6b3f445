// Measures submits through a whole agent against a loop of the batch system's own command at the site, and what watching
// the queue costs against its own command: node bench/backends/run.mjs [--only slurm,torque,sge,condor] [--jobs N] [--json]
// [--watch N] [--every N]: N seconds of watching, with N seconds between two polls. It needs a built dist/,
// openssh-server
// and, from Debian, slurm-wlm and munge (and libslurm-perl, libswitch-perl), or gridengine-master, -exec and -client;
// HTCondor is available after `npm test`.
import { loadPaths } from '../../dist/config/paths.js';
import { openQueue } from '../../dist/queue/api.js';
import { bundled } from '../bundle.mjs';

await bundled(new URL('backends.ts', import.meta.url), ({ main }) =>
  main(process.argv.slice(2), { openQueue, loadPaths }),
);
