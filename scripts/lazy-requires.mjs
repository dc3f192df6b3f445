// For esbuild: these packages' modules, as the TypeScript compiler writes CommonJS, are evaluated when they are first used and not
// when another one that names them is. A command uses a small part of them.
import { readFileSync } from 'node:fs';

/** `const cache_1 = __importDefault(require("./cache"));`: names that the compiler made, and nobody else can have. */
const REQUIRE = /^(?:const|var) (\w+_\d+) = ((?:__import\w+\()?require\("[^"]+"\)\)?);$/gm;

/** need-node.cjs has done it, without a parser of versions. */
const CHECK = /^checkNodeVersion\(\);$/m;

export function lazyRequires(...packages) {
  return {
    name: 'lazy-requires',
    setup: ({ onLoad }) =>
      onLoad({ filter: new RegExp(`/node_modules/(?:${packages.join('|')})/.*\\.js$`) }, ({ path }) => ({
        contents: lazy(readFileSync(path, 'utf8')),
      })),
  };
}

function lazy(text) {
  const required = new Map([...text.matchAll(REQUIRE)].map(([, name, what]) => [name, what]));
  return text
    .replaceAll(REQUIRE, '')
    .replace(CHECK, '')
    .replaceAll(/\b\w+_\d+\b/g, (name) => (required.has(name) ? `(${name}())` : name))
    .replace(/^(?:"use strict";)?/, (strict) =>
      [strict, ...[...required].map(([name, what]) => `function ${name}() { return ${what}; }`)].join('\n'),
    );
}
