// The dedicated scheduler: the time of a grant of 64 workers, and the use of machines with backfill beside plain FIFO:
//   node bench/pool/gangs.mjs
import { bundled } from '../bundle.mjs';

await bundled(new URL('gangs.ts', import.meta.url), ({ main }) => main());
process.exit(0);
