// Bundles the benchmark with the sources as they are and runs it: `node bench/transport/run.mjs [--json]`.
import { bundled } from '../bundle.mjs';

await bundled(new URL('transport.ts', import.meta.url), async () => {});
