// Measures a whole agent against what a user would run instead: node bench/agent/run.mjs [--json] [--only NAME]
// It needs a built dist/ and, for runs through Slurm, Debian's slurm-wlm, munge and openssh-server.
import { loadPaths } from '../../dist/config/paths.js';
import { openQueue } from '../../dist/queue/api.js';
import { bundled } from '../bundle.mjs';

await bundled(new URL('agent.ts', import.meta.url), ({ main }) =>
  main(process.argv.slice(2), { openQueue, loadPaths }),
);
