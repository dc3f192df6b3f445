// How long it takes until many small files that a job makes have come home while it runs (`stream_results`), and what that costs:
// node bench/streams/run.mjs [--files N] [--site], with a built dist/; --site: at a fork site over ssh, not in the pool.
import { bundled } from '../bundle.mjs';

await bundled(new URL('streams.ts', import.meta.url), ({ main }) => main(process.argv.slice(2)));
