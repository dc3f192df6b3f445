import { mkdtempSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Bundles a benchmark with the sources as they are, and runs `work` with what it exports.
 *
 * @param {URL} source a TypeScript file
 * @param {(exported: Record<string, (...args: unknown[]) => Promise<void>>) => Promise<void>} work
 */
export async function bundled(source, work) {
  // Below the repository, so that packages outside the bundle are found.
  const out = mkdtempSync(join(root, 'node_modules/.gryphus-bench-'));
  const outfile = join(out, `${basename(source.pathname, '.ts')}.mjs`);
  try {
    await build({
      entryPoints: [fileURLToPath(source)],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      packages: 'external',
      // Code that starts the parts of a test finds its files beside itself.
      define: { 'import.meta.dirname': JSON.stringify(join(root, 'test/agent')) },
    });
    await work(await import(pathToFileURL(outfile).href));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}
