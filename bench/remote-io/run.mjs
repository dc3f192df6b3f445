// How fast a job on a pilot over ssh reads a file of its submit directory, beside scp of the same file in the same run, and what opening
// files that it has costs: node bench/remote-io/run.mjs [--mb N] [--files N] [--opens N] [--rounds N], with a built dist/ and Debian's openssh-server.
import { bundled } from '../bundle.mjs';

await bundled(new URL('remote-io.ts', import.meta.url), ({ main }) => main(process.argv.slice(2)));
