// Many simulated workers at many simulated sites, which speak the real protocol to one real agent:
//   node bench/pool/run-simulation.mjs [--workers 1007] [--jobs 23750] [--seconds 1] [--json]
// It needs a built dist/. See docs/glideins.md.
import { bundled } from '../bundle.mjs';

await bundled(new URL('simulation.ts', import.meta.url), ({ main }) => main(process.argv.slice(2)));
process.exit(0);
