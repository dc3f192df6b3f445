// Bundles the benchmark with the sources as they are and runs it: `node bench/classad/run.mjs [--json]`.
import { bundled } from '../bundle.mjs';

await bundled(new URL('classad.ts', import.meta.url), async () => {});
