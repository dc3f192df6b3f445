// Bundles the benchmark with the sources as they are and runs it: `node bench/classad/run.mjs [--json]`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const directory = mkdtempSync(join(tmpdir(), 'gryphus-bench-'));
const outfile = join(directory, 'classad.mjs');
try {
  await build({
    entryPoints: [fileURLToPath(new URL('classad.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
  });
  process.exitCode = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], { stdio: 'inherit' }).status ?? 1;
} finally {
  rmSync(directory, { recursive: true });
}
