// Compiles src/ to dist/ and carries along what is not TypeScript: the site's shell programs and the queue's Lua. The
// command line is bundled into dist/cli/, because loading hundreds of small modules takes longer than most commands. The
// new dist/ takes the old one's place only when it is whole.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** Where to: another directory inside the checkout may be named. */
const dist = join(root, process.env['GRYPHUS_DIST'] ?? 'dist');
const fresh = join(root, `dist.${process.pid}.new`);
const old = join(root, `dist.${process.pid}.old`);
const ASSETS = ['.sh', '.lua', '.awk', '.py', '.mjs'];

try {
  process.exitCode = await make();
} finally {
  rmSync(old, { recursive: true, force: true });
  rmSync(fresh, { recursive: true, force: true });
}

/** The compiler's exit status; dist/ is replaced only where that is 0. */
async function make() {
  const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', join(root, 'tsconfig.json'), '--outDir', fresh], {
    stdio: 'inherit',
  });
  if (tsc.status !== 0) return tsc.status ?? 1;

  for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!ASSETS.some((ending) => file.endsWith(ending))) continue;
    const target = join(fresh, file);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, 'src', file), target);
  }
  await bundle();
  await bundleWorker();
  writeFileSync(join(fresh, '.built'), '');

  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
  return 0;
}

/** dist/cli/: the executable, the commands, and what they load later, in pieces that are loaded when they are used. */
async function bundle() {
  await build({
    entryPoints: [
      { in: join(fresh, 'bin/gryphus.js'), out: 'gryphus' },
      { in: join(fresh, 'commands/registry.js'), out: 'registry' },
      // One process for each DAG and sub-DAG: its start counts.
      { in: join(fresh, 'dag/main.js'), out: 'dag-manager' },
    ],
    outdir: join(fresh, 'cli'),
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'warning',
    // Native, optional, or of use to the daemons alone.
    external: ['ssh2', 'cpu-features', 'bullmq', 'nodemailer', 'basic-ftp', 'pino', '*.node'],
    banner: {
      js: "import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);",
    },
    plugins: [{ name: 'own-places', setup: keepOwnPlaces }],
  });
  const bin = join(fresh, 'bin/gryphus.js');
  writeFileSync(bin, "#!/usr/bin/env node\nimport '../cli/gryphus.js';\n");
  chmodSync(bin, 0o755);
}

/** dist/worker.mjs: the pool's worker in one file that needs nothing but Node, to be carried to any site. */
async function bundleWorker() {
  await build({
    entryPoints: [join(root, 'src/pool/worker-main.ts')],
    outfile: join(fresh, 'worker.mjs'),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    keepNames: true,
    legalComments: 'none',
    logLevel: 'warning',
    loader: { '.sh': 'text' },
  });
}

/** A bundled module still finds the files beside its own place in dist/; only the commands live where the bundle is. */
function keepOwnPlaces({ onLoad }) {
  onLoad({ filter: /\.js$/ }, ({ path }) => {
    const place = relative(fresh, path);
    if (place.startsWith('..') || place.startsWith('commands/') || place.startsWith('bin/')) return undefined;
    const text = readFileSync(path, 'utf8');
    if (!text.includes('import.meta.url')) return undefined;
    const own = `new URL(${JSON.stringify(`../${place}`)}, import.meta.url).href`;
    return { contents: text.replaceAll('import.meta.url', own), loader: 'js' };
  });
}
