// Many simulated workers at many simulated sites, which speak the real protocol to one real agent:
//   node bench/pool/run-simulation.mjs [--workers 1007] [--jobs 23750] [--seconds 1] [--json]
// It wants a built dist/. See docs/glideins.md.
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, '../../node_modules/.cache/gryphus-bench-simulation');
mkdirSync(out, { recursive: true });
await build({
  entryPoints: [join(here, 'simulation.ts')],
  outfile: join(out, 'simulation.mjs'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  define: { 'import.meta.dirname': JSON.stringify(join(here, '../../test/agent')) },
});
try {
  await (await import(pathToFileURL(join(out, 'simulation.mjs')).href)).main(process.argv.slice(2));
  process.exit(0);
} finally {
  rmSync(out, { recursive: true, force: true });
}
