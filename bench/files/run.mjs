// How fast files go to a site and come home, beside scp and rsync of the same files in the same run: node bench/files/run.mjs
// [--mb N] [--files N] [--rounds N] [--only big|many] [--glidein] [--json], with a built dist/, Debian's openssh-server and, if it is there, rsync.
import { bundled } from '../bundle.mjs';

await bundled(new URL('files.ts', import.meta.url), ({ main }) => main(process.argv.slice(2)));
