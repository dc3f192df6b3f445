// Measures a whole agent against what a user would run instead: node bench/agent/run.mjs [--json] [--only NAME]
// It wants a built dist/ and, for what runs through Slurm, Debian's slurm-wlm, munge and openssh-server.
import { mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, '../../node_modules/.cache/gryphus-bench-agent');
mkdirSync(out, { recursive: true });
await build({
  entryPoints: [join(here, 'agent.ts')],
  outfile: join(out, 'agent.mjs'),
  bundle: true,
  format: 'esm',
  platform: 'node',
  packages: 'external',
  define: { 'import.meta.dirname': JSON.stringify(join(here, '../../test/agent')) },
});
try {
  await (await import(pathToFileURL(join(out, 'agent.mjs')).href)).main(process.argv.slice(2));
} finally {
  rmSync(out, { recursive: true, force: true });
}
