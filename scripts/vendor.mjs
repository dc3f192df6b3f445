// The packages that the built program needs, each in one file of dist/vendor/: an installation is small, needs no registry and no
// compiler, and is what was tested.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build, transform } from 'esbuild';

/** How a package's file is made: from an ES module, or from a CommonJS one, whose names Node has to find in the text. */
const PACKAGES = {
  zod: 'esm',
  'smol-toml': 'esm',
  bullmq: 'cjs',
  ioredis: 'cjs',
  'node-forge': 'cjs',
  nodemailer: 'cjs',
  'basic-ftp': 'cjs',
  pino: 'cjs',
  ssh2: 'cjs',
};
const NAMES = Object.keys(PACKAGES);
/** Modules inside a package that we import too: their names are in the package's own file. */
const INSIDE = { ssh2: ['ssh2/lib/protocol/kex.js', 'ssh2/lib/protocol/utils.js'] };
/** A package or a module inside it: the package. */
const packageOf = (specifier) => specifier.split('/')[0];
const specifiersOf = (names) => [...names, ...names.flatMap((name) => INSIDE[name] ?? [])].join('|');
/** The specifier in an import, an export or an import() of what the compiler wrote. */
const SPECIFIER = new RegExp(`(\\bfrom |\\bimport\\()(['"])(${specifiersOf(NAMES)})\\2`, 'g');

/** In a bundle of `dist/NAME/`: these packages are not bundled but loaded from their own files when they are used. */
export function externals(names) {
  return {
    name: 'vendored',
    setup: ({ onResolve }) =>
      onResolve({ filter: new RegExp(`^(${specifiersOf(names)})$`) }, ({ path }) => ({
        path: `../vendor/${packageOf(path)}.js`,
        external: true,
      })),
  };
}

/** Zod's messages in fifty languages are not needed. */
export const englishOnly = {
  name: 'english-only',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, ({ path }) => ({
      contents: "export { default as en } from './en.js';",
      resolveDir: dirname(path),
    })),
};

/** The compiled halves of ssh2, which are faster: loaded where somebody has installed ssh2 beside us, and never needed. */
const nativeIsOptional = {
  name: 'native-is-optional',
  setup: ({ onResolve }) => {
    onResolve({ filter: /\/sshcrypto\.node$/ }, () => ({
      path: 'ssh2/lib/protocol/crypto/build/Release/sshcrypto.node',
      external: true,
    }));
    onResolve({ filter: /^(cpu-features|msgpackr-extract)$/ }, ({ path }) => ({ path, external: true }));
  },
};

/** Parts of BullMQ that we never call: its store in PostgreSQL, and jobs at times of a calendar. */
const unused = {
  name: 'unused',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/(bullmq\/dist\/cjs\/postgres\/index|cron-parser\/dist\/index)\.js$/ }, () => ({
      contents: '',
    })),
};

/** BullMQ's programs in Lua without comments and indentation, which are more than half of them. */
const bareLua = {
  name: 'bare-lua',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/bullmq\/dist\/cjs\/scripts\/[^/]+-\d+\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8')
        .replaceAll(/--\[\[[^]*?\]\]/g, '')
        .replaceAll(/^[ \t]*--.*$/gm, '')
        .replaceAll(/^[ \t]+/gm, '')
        .replaceAll(/\n{2,}/g, '\n'),
    })),
};

/** How these packages are bundled, in a file of their own or in one with our programs. */
export const asVendored = [nativeIsOptional, unused, bareLua, englishOnly];

/** Writes dist/vendor/, and makes the compiled modules import from there. Returns what is in it, as esbuild's metafile does. */
export async function vendor(dist, root) {
  const dir = join(dist, 'vendor');
  const inputs = {};
  for (const [name, kind] of Object.entries(PACKAGES)) {
    const { metafile } = await build({
      stdin: { contents: entry(name, kind), resolveDir: root, sourcefile: `${name}.js` },
      outfile: join(dir, `${name}.js`),
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'cjs',
      minify: true,
      keepNames: true,
      legalComments: 'none',
      logLevel: 'warning',
      absWorkingDir: root,
      metafile: true,
      define: { 'import.meta.url': 'ownUrl' },
      banner: { js: "const ownUrl = require('node:url').pathToFileURL(__filename).href;" },
      plugins: [...asVendored, apartFrom(name)],
      ...(await nodeNames(name, kind)),
    });
    Object.assign(inputs, metafile.inputs);
  }
  writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }\n');
  vendorTypes(dir, root);
  useVendored(dist);
  return inputs;
}

/** What the library's own types are made of: Zod's; a Redis connection is opaque. */
function vendorTypes(dir, root) {
  for (const part of ['classic', 'core']) {
    const from = join(root, 'node_modules/zod/v4', part);
    mkdirSync(join(dir, 'zod', part), { recursive: true });
    for (const name of readdirSync(from).filter((one) => one.endsWith('.d.ts')))
      copyFileSync(join(from, name), join(dir, 'zod', part, name));
  }
  mkdirSync(join(dir, 'zod/locales'));
  writeFileSync(join(dir, 'zod/locales/index.d.ts'), 'export {};\n');
  writeFileSync(join(dir, 'zod.d.ts'), "export * from './zod/classic/external.js';\n");
  writeFileSync(join(dir, 'ioredis.d.ts'), 'export declare class Redis {\n  #connection: unknown;\n}\n');
}

const entry = (name, kind) =>
  kind === 'esm'
    ? `export * from ${JSON.stringify(name)};`
    : `module.exports = require(${JSON.stringify(name)});
for (const inside of [${(INSIDE[name] ?? []).map((one) => `require(${JSON.stringify(one)})`)}]) Object.assign(module.exports, inside);`;

/** Dead code, from which Node knows the names of a CommonJS module; esbuild writes its own after an ES module. */
async function nodeNames(name, kind) {
  if (kind === 'esm') return {};
  const modules = await Promise.all([name, ...(INSIDE[name] ?? [])].map((one) => import(one)));
  const names = modules.flatMap(Object.keys).filter((one) => /^[A-Za-z_$][\w$]*$/.test(one) && one !== 'default');
  return { footer: { js: `0 && (module.exports = { ${names.join(', ')} });` } };
}

/** A package that another one uses stays in its own file: there is one of each in a process. */
function apartFrom(own) {
  return {
    name: 'apart',
    setup: ({ onResolve }) =>
      onResolve({ filter: new RegExp(`^(${NAMES.filter((one) => one !== own).join('|')})$`) }, ({ path }) => ({
        path: `./${path}.js`,
        external: true,
      })),
  };
}

/** The library, the programs, and what the documentation is made from, as the commands are, which are not in the package. */
const ENTRIES = [
  'index.js',
  'cli/bundle.js',
  'compat-cli/bundle.js',
  'daemons/bundle.js',
  'web-server/web-server.js',
  'batch-script/docs.js',
  'submit/catalogue-docs.js',
];

/** The compiled modules of the sources, and their types. */
const modules = (dist) =>
  readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter(
      (name) => /\.(js|d\.ts)$/.test(name) && !/^(vendor|cli|compat-cli|daemons|web-server|web-page|bin)\//.test(name),
    )
    .map((name) => join(dist, name));

/**
 * For a package: the compiled modules that something loads, without comments and spaces. The others are in a bundle
 * only, or hold nothing but types.
 */
export async function onlyWhatRuns(dist, programs) {
  const loaded = new Set();
  const load = (file) => {
    if (loaded.has(file) || !existsSync(file)) return;
    loaded.add(file);
    // Where a bundled module was is not loaded.
    const text = readFileSync(file, 'utf8').replaceAll(/new URL\("[^"]+",ownUrl\)/g, '');
    for (const [, to] of text.matchAll(/['"`](\.[^'"`]+\.js)['"`]/g)) load(join(dirname(file), to));
  };
  for (const file of [...ENTRIES, ...programs]) load(join(dist, file));
  for (const file of readdirSync(join(dist, 'commands'), { recursive: true, encoding: 'utf8' }))
    if (file.endsWith('.js')) load(join(dist, 'commands', file));
  // Work items (src/queue/work.ts) are given and taken by daemons only, whose bundle has BullMQ.
  rmSync(join(dist, 'vendor/bullmq.js'));
  for (const file of modules(dist).filter((name) => name.endsWith('.js'))) {
    if (!loaded.has(file)) {
      rmSync(file);
      continue;
    }
    const { code } = await transform(readFileSync(file, 'utf8'), {
      target: 'node20',
      legalComments: 'none',
      minifyWhitespace: true,
      minifySyntax: true,
    });
    writeFileSync(file, code);
  }
}

function useVendored(dist) {
  for (const file of modules(dist)) {
    const text = readFileSync(file, 'utf8');
    const up = relative(dirname(file), join(dist, 'vendor')).replaceAll('\\', '/');
    const own = text.replaceAll(SPECIFIER, (_, before, quote, of) => {
      return `${before}${quote}${up.startsWith('.') ? up : `./${up}`}/${packageOf(of)}.js${quote}`;
    });
    if (own !== text) writeFileSync(file, own);
  }
}
