// Measures submits through a whole agent against a loop of the batch system's own command at the site, and what watching
// costs: node bench/backends/run.mjs [--json] [--only slurm|sge] [--jobs N]
// It wants a built dist/, openssh-server, and Debian's slurm-wlm and munge, or gridengine-master, -exec and -client.
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, '../../node_modules/.cache/gryphus-bench-backends');
mkdirSync(out, { recursive: true });
await build({
  entryPoints: [join(here, 'backends.ts')],
  outfile: join(out, 'backends.mjs'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  define: { 'import.meta.dirname': JSON.stringify(join(here, '../../test/agent')) },
});
try {
  const { openQueue } = await import('../../dist/queue/api.js');
  const { loadPaths } = await import('../../dist/config/paths.js');
  const { main } = await import(pathToFileURL(join(out, 'backends.mjs')).href);
  await main(process.argv.slice(2), { openQueue, loadPaths });
} finally {
  rmSync(out, { recursive: true, force: true });
}
