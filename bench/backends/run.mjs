// Measures submits through a whole agent against a loop of the batch system's own command at the site, and what watching
// costs: node bench/backends/run.mjs [--json] [--only slurm|sge] [--jobs N]
// It wants a built dist/, openssh-server, and Debian's slurm-wlm and munge, or gridengine-master, -exec and -client.
import { loadPaths } from '../../dist/config/paths.js';
import { openQueue } from '../../dist/queue/api.js';
import { bundled } from '../bundle.mjs';

await bundled(new URL('backends.ts', import.meta.url), ({ main }) =>
  main(process.argv.slice(2), { openQueue, loadPaths }),
);
