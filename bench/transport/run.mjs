// Bundles the benchmark with the sources as they are and runs it: `node bench/transport/run.mjs [--json]`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

// Below the repository, so that the packages that stay outside of the bundle are found.
const directory = mkdtempSync(join(dirname(fileURLToPath(import.meta.url)), '../../node_modules/.bench-'));
const outfile = join(directory, 'transport.mjs');
try {
  await build({
    entryPoints: [fileURLToPath(new URL('transport.ts', import.meta.url))],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  process.exitCode = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1;
} finally {
  rmSync(directory, { recursive: true });
}
