// Compiles src/ to dist/ and copies what is not TypeScript: the site's shell programs and the queue's Lua. The
// command line is bundled into dist/cli/ and the daemons into dist/daemons/, because loading hundreds of small modules takes
// longer than most commands do, and most of a daemon's start. The new dist/ replaces the old one only when it is complete.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { lazyRequires } from './lazy-requires.mjs';
import { writeManPages } from './man.mjs';
import needNode from './need-node.cjs';
import { buildNative } from './native.mjs';
import { noticesOf } from './notices.mjs';
import { asVendored, englishOnly, externals, vendor, onlyWhatRuns } from './vendor.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** The output directory: another one inside the checkout may be named. */
const dist = join(root, process.env['GRYPHUS_DIST'] ?? 'dist');
const fresh = join(root, `dist.${process.pid}.new`);
const old = join(root, `dist.${process.pid}.old`);
/** What is bundled, as in esbuild's metafile. */
const bundled = {};
const ASSETS = ['.sh', '.lua', '.awk', '.py', '.mjs'];

/** The daemons' programs: the file that starts each. */
const DAEMONS = {
  scheduler: 'scheduler/main.js',
  'log-writer': 'scheduler/user-logs/writer-main.js',
  gridmanager: 'gridmanager/main.js',
  'central-manager': 'pool/central-manager/central-manager-main.js',
  port: 'pool/port-main.js',
  flock: 'flock/main.js',
  'dag-manager': 'dag/dag-manager.js',
};
/** What they load only when they need it, which is always or often. */
const LOADED_LATER = {
  scheduler: ['queue/open.js', 'queue/redis-server.js'],
  gridmanager: ['queue/open.js', 'queue/work.js', 'transport/ssh.js', 'transport/local.js'],
  'dag-manager': ['queue/open.js'],
};

/** What a listing command loads and compiles, without an agent. */
const WARM_UP = `export async function warmUp() {
  const { Gryphus } = await import('./index.js');
  await Gryphus.open({ start: false }).catch(() => undefined);
  const job = { id: { cluster: 1, proc: 0 }, ad: { JobStatus: '1', Owner: '"x"' } };
  const agent = { async clusters() { return []; }, async *queryChunks() { yield [job]; }, async *jobs() { yield job; } };
  const { squeue } = await import('./commands/compat/squeue.js');
  const { sacct } = await import('./commands/compat/sacct.js');
  await squeue(agent, ['-S', 'i'], () => undefined);
  await sacct(agent, ['-P', '-j', '1'], () => undefined);
  await import('./commands/compat/sbatch.js');
  await import('./commands/compat/scancel.js');
}`;

try {
  process.exitCode = await make();
} finally {
  rmSync(old, { recursive: true, force: true });
  rmSync(fresh, { recursive: true, force: true });
}

/** The compiler's exit status; dist/ is replaced only if it is 0. */
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
  pruneTypes();
  await bundlePage(join(fresh, 'web-page'));
  await bundle();
  await bundleSent('worker', 'pool/worker/worker-main.ts');
  await bundleSent('io-proxy', 'io-proxy/io-proxy-main.ts');
  Object.assign(bundled, await vendor(fresh, root));
  writeFileSync(join(fresh, 'NOTICES.txt'), noticesOf({ inputs: bundled }, root));
  if (process.argv.includes('--package')) await onlyWhatRuns(fresh, Object.values(DAEMONS));
  buildNative(root, join(fresh, 'native'));
  await writeManPages(fresh, root);
  writeFileSync(join(fresh, '.built'), `${new Date().toISOString()}\n`);

  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
  warmUp(dist);
  return 0;
}

/** Only the types that the library's own types refer to are kept. */
function pruneTypes() {
  const needed = new Set();
  const need = (file) => {
    if (needed.has(file)) return;
    needed.add(file);
    for (const [, from] of readFileSync(file, 'utf8').matchAll(/['"](\.[^'"]+)\.[jt]s['"]/g))
      need(join(dirname(file), `${from}.d.ts`));
  };
  need(join(fresh, 'index.d.ts'));
  for (const name of readdirSync(fresh, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('.d.ts') && !needed.has(join(fresh, name))) rmSync(join(fresh, name));
}

/** The live page: src/web/page, in one file of each kind. */
async function bundlePage(outdir) {
  const page = join(root, 'src/web/page');
  const { metafile } = await build({
    entryPoints: [
      { in: join(page, 'main.tsx'), out: 'app' },
      { in: join(page, 'app.css'), out: 'app' },
    ],
    outdir,
    metafile: true,
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    target: ['chrome110', 'firefox110', 'safari16.4'],
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    jsx: 'automatic',
    jsxImportSource: 'preact',
  });
  Object.assign(bundled, metafile.inputs);
  for (const file of ['index.html', 'icon.svg']) copyFileSync(join(page, file), join(outdir, file));
}

/** What the bundles of the command line and the page's server have in common. */
function common() {
  return {
    bundle: true,
    platform: 'node',
    target: 'node20',
    minify: true,
    legalComments: 'none',
    metafile: true,
    absWorkingDir: root,
    logLevel: 'warning',
    // Used by few commands, or only by the daemons.
    plugins: [
      { name: 'own-places', setup: keepOwnPlaces },
      englishOnly,
      lazyRequires('@oclif/core', 'ioredis'),
      externals(['bullmq', 'nodemailer', 'basic-ftp', 'pino', 'node-forge', 'ssh2']),
    ],
  };
}

/** The daemons' bundle has a map beside it, for the stack traces in their logs. */
function ofDaemons() {
  return {
    sourcemap: 'external',
    plugins: [
      { name: 'own-places', setup: keepOwnPlaces },
      ...asVendored,
      lazyRequires('ioredis'),
      externals(['nodemailer', 'basic-ftp', 'node-forge']),
    ],
  };
}

/** dist/<name>/: this program and everything it loads, in one file that is run from a code cache, one for each of the loaders. */
async function bundleCached(name, contents, rest = {}, loaders = ['load']) {
  const dir = join(fresh, name);
  const { metafile } = await build({
    ...common(),
    stdin: { contents, resolveDir: fresh },
    outfile: join(dir, 'bundle.js'),
    format: 'cjs',
    // A script from the code cache has no import() of its own.
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'ownUrl' },
    banner: { js: "const ownUrl = require('node:url').pathToFileURL(__filename).href;" },
    ...rest,
  });
  // A file of one-byte characters is read faster.
  const text = readFileSync(join(dir, 'bundle.js'), 'utf8');
  const ascii = text.replaceAll(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  // Its name in a user's code cache.
  const hash = createHash('sha256').update(ascii).digest('hex').slice(0, 32);
  writeFileSync(join(dir, 'bundle.js'), `${ascii}\n//${hash}`);
  Object.assign(bundled, metafile.inputs);
  for (const loader of loaders) copyFileSync(join(root, 'scripts/bundle-loader.cjs'), join(dir, `${loader}.js`));
  writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }\n');
}

/**
 * dist/cli/: the command line; dist/compat-cli/: the commands of other systems; dist/daemons/: the daemons, each of which starts from
 * where its own module was.
 */
async function bundle() {
  await bundleCached('cli', "export { main } from './commands/main.js'; export * from './commands/registry.js';");
  await bundleCached('compat-cli', `export { main } from './commands/compat/main.js'; ${WARM_UP}`);
  const importing = (file) => `() => import(${JSON.stringify(`./${file}`)})`;
  const lines = Object.entries(DAEMONS).map(([name, file]) => {
    const parts = [...importsOf(file), ...(LOADED_LATER[name] ?? [])].map(importing).join(', ');
    return `${JSON.stringify(name)}: { start: ${importing(file)}, parts: [${parts}] },`;
  });
  await bundleCached(
    'daemons',
    `const daemons = { ${lines.join('\n')} };
export const start = (name) => daemons[name].start();
export const warmUp = async (name) => { for (const load of daemons[name].parts) await load(); };`,
    ofDaemons(),
    Object.keys(DAEMONS),
  );
  for (const [name, file] of Object.entries(DAEMONS)) startFromBundle(name, file);
  // The page's server with its library, which nobody else needs; the API is the one beside it.
  const web = await build({
    ...common(),
    entryPoints: [join(fresh, 'web/web-main.js')],
    outfile: join(fresh, 'web-server/web-server.js'),
    format: 'esm',
    plugins: [{ name: 'shared-api', setup: shareApi }, externals(['pino', 'zod'])],
    // Fastify's own checks by JSON schema; every request is checked by zod.
    alias: {
      '@fastify/ajv-compiler': join(root, 'scripts/no-compiler.cjs'),
      '@fastify/fast-json-stringify-compiler': join(root, 'scripts/no-compiler.cjs'),
    },
    banner: {
      js: "import { createRequire as nodeRequire } from 'node:module'; const require = nodeRequire(import.meta.url);",
    },
  });
  Object.assign(bundled, web.metafile.inputs);
  rmSync(join(fresh, 'web'), { recursive: true });
  writeFileSync(join(fresh, 'cli/registry.js'), "module.exports = require('./load.js');\n");
  writeFileSync(join(fresh, 'bin/package.json'), '{ "type": "commonjs" }\n');
  const bin = join(fresh, 'bin/gryphus.js');
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  // The version, in oclif's words, is told without loading the command line. Most of HTCondor's commands are our own command line's.
  const start = `const words = process.argv.slice(2);
if (words.length === 1 && words[0] === '--version')
  process.stdout.write(\`gryphus/${version} \${process.platform}-\${process.arch} node-\${process.version}\\n\`);
else if (words[0] === 'compat' && words[1] === 'speak' && !/^condor_(?!(version|config_val|prio)$)/.test(words[2]))
  require('../compat-cli/load.js').main(words.slice(2));
else require('../cli/load.js').main(words);`;
  // A shell script that starts Node with itself, in lines that are directives and comments to JavaScript.
  const { TELL_OF_HANG_UP, IGNORE_HANG_UP } = await import(join(fresh, 'util/hang-up.js'));
  const shell = [...TELL_OF_HANG_UP, 'exec node "$0" "$@"'].map((line) => `':' //; ${line}\n`).join('');
  writeFileSync(bin, `#!/bin/sh\n${shell}'use strict';\n${needNode}\n${IGNORE_HANG_UP}\n${start}\n`);
  chmodSync(bin, 0o755);
}

/** The modules that a program's first one imports, which itself would start it. */
function importsOf(file) {
  const text = readFileSync(join(fresh, file), 'utf8');
  return [...text.matchAll(/ from '(\.[^']+)'/g)].map(([, path]) => join(dirname(file), path));
}

function startFromBundle(name, file) {
  const loader = relative(dirname(file), `daemons/${name}.js`);
  const text = `import { createRequire } from 'node:module';
createRequire(import.meta.url)(${JSON.stringify(loader)}).start(${JSON.stringify(name)});\n`;
  writeFileSync(join(fresh, file), text);
  rmSync(join(fresh, `${file}.map`));
}

/** The code caches, after commands that load what most commands load. They start no daemon. */
function warmUp(built) {
  const commands = [
    ['status', '--json'],
    ['q', '--help'],
    ['submit', '--dry-run', '-'],
  ];
  keepCache(join(built, 'cli/load.js'), `for (const words of ${JSON.stringify(commands)}) await main(words);`);
  keepCache(join(built, 'compat-cli/load.js'), 'await warmUp();');
  for (const name of Object.keys(DAEMONS))
    keepCache(join(built, `daemons/${name}.js`), `await warmUp(${JSON.stringify(name)});`);
}

function keepCache(loader, work) {
  const home = mkdtempSync(join(tmpdir(), 'gryphus-build-'));
  const text = `const { main, warmUp, keep } = require(${JSON.stringify(loader)});
(async () => { ${work} keep(); process.exit(0); })();`;
  const { status, stderr } = spawnSync(process.execPath, ['-e', text], {
    env: { PATH: process.env.PATH, HOME: home, GRYPHUS_HOME: home },
    input: 'executable = /bin/true\ntransfer_executable = false\nqueue\n',
    encoding: 'utf8',
  });
  rmSync(home, { recursive: true, force: true });
  // Without it the command line starts too, but more slowly.
  if (status !== 0) process.stderr.write(`${loader} has no code cache: ${stderr}\n`);
}

/** dist/NAME.mjs: one file that needs nothing but Node and can be sent to any site. */
async function bundleSent(name, main) {
  const outfile = join(fresh, `${name}.mjs`);
  const { metafile } = await build({
    entryPoints: [join(root, 'src', main)],
    outfile,
    metafile: true,
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    keepNames: true,
    legalComments: 'none',
    logLevel: 'warning',
    loader: { '.sh': 'text' },
    banner: { js: needNode },
    plugins: [englishOnly],
  });
  // It is sent as this one file.
  appendFileSync(outfile, `/*\n${noticesOf(metafile, root).replaceAll('*/', '* /')}*/\n`);
}

/** Modules outside dist/web/ are not bundled with it, but loaded from where they are. */
function shareApi({ onResolve }) {
  onResolve({ filter: /^\.\.\// }, ({ path, importer }) => {
    const place = relative(fresh, join(dirname(importer), path));
    if (importer.includes('node_modules') || place.startsWith('..') || place.startsWith('web/')) return undefined;
    return { path: `../${place}`, external: true };
  });
}

/** A bundled module still finds the files beside its own place in dist/; only the commands are where the bundle is. */
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
