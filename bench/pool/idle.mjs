// What many workers, sites and few jobs cost in one agent: node bench/pool/idle.mjs [--workers 2000] [--sites 200] [--a-minute 1000]
// [--minutes 1] [--settle 90] [--managers 1] [--json], with a built dist/.
import { bundled } from '../bundle.mjs';

await bundled(new URL('idle.ts', import.meta.url), ({ main }) => main(process.argv.slice(2)));
process.exit(0);
