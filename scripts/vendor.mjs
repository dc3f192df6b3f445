// The packages that the built program needs, each in one file of dist/vendor/: an installation is small, needs no registry, and
// is what was tested. ssh2 alone stays a dependency: its faster native part is optional, and is compiled where it can be.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { build } from 'esbuild';
import { noticesOf } from './notices.mjs';

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
};
const NAMES = Object.keys(PACKAGES);
/** The specifier in an import, an export or an import() of what the compiler wrote. */
const SPECIFIER = new RegExp(`(\\bfrom |\\bimport\\()(['"])(${NAMES.join('|')})\\2`, 'g');

/** In a bundle of `dist/NAME/`: these packages are not bundled but loaded from their own files when they are used. */
export function externals(names) {
  return {
    name: 'vendored',
    setup: ({ onResolve }) =>
      onResolve({ filter: new RegExp(`^(${names.join('|')})$`) }, ({ path }) => ({
        path: `../vendor/${path}.js`,
        external: true,
      })),
  };
}

/** Writes dist/vendor/, and makes the compiled modules import from there. */
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
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: 'none',
      logLevel: 'warning',
      absWorkingDir: root,
      metafile: true,
      define: { 'import.meta.url': 'ownUrl' },
      banner: { js: "const ownUrl = require('node:url').pathToFileURL(__filename).href;" },
      // msgpackr's native part is optional.
      external: ['msgpackr-extract'],
      plugins: [apartFrom(name)],
      ...(await nodeNames(name, kind)),
    });
    Object.assign(inputs, metafile.inputs);
  }
  writeFileSync(join(dir, 'package.json'), '{ "type": "commonjs" }\n');
  writeFileSync(join(dir, 'NOTICES.txt'), noticesOf({ inputs }, root));
  useVendored(dist);
}

const entry = (name, kind) =>
  kind === 'esm' ? `export * from ${JSON.stringify(name)};` : `module.exports = require(${JSON.stringify(name)});`;

/** Dead code, from which Node knows the names of a CommonJS module; esbuild writes its own after an ES module. */
async function nodeNames(name, kind) {
  if (kind === 'esm') return {};
  const names = Object.keys(await import(name)).filter((one) => /^[A-Za-z_$][\w$]*$/.test(one) && one !== 'default');
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

function useVendored(dist) {
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.js') || /^(vendor|cli|compat-cli|dag-cli|bin)\//.test(name)) continue;
    const file = join(dist, name);
    const text = readFileSync(file, 'utf8');
    const up = relative(dirname(file), join(dist, 'vendor')).replaceAll('\\', '/');
    const own = text.replaceAll(SPECIFIER, (_, before, quote, of) => {
      return `${before}${quote}${up.startsWith('.') ? up : `./${up}`}/${of}.js${quote}`;
    });
    if (own !== text) writeFileSync(file, own);
  }
}
