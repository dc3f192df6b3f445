// For esbuild: these packages' modules, as the TypeScript compiler writes CommonJS, are evaluated when they are first used and not
// when another one that names them is. A command uses a small part of them.
import { readFileSync } from 'node:fs';

/** `const cache_1 = __importDefault(require("./cache"));`: names that the compiler made, and nobody else can have. */
const REQUIRE = /^(?:const|var) (\w+_\d+) = ((?:__import\w+\()?require\("[^"]+"\)\)?);$/gm;

/** What takes longer than it needs, by the end of its file's name: a text there, and what stands in its place. */
const SLOW = [
  // need-node.cjs has done it, without a parser of versions.
  ['@oclif/core/lib/index.js', '\ncheckNodeVersion();', ''],
  // V8 optimizes a class's prototype again for each of 600 functions that are added to it.
  [
    'ioredis/built/utils/Commander.js',
    'commands.forEach(function (commandName) {\n    Commander.prototype[commandName] = generateFunction(commandName, commandName, "utf8");\n    Commander.prototype[',
    'const all = {};\nObject.setPrototypeOf(Commander.prototype, all);\ncommands.forEach(function (commandName) {\n    all[commandName] = generateFunction(commandName, commandName, "utf8");\n    all[',
  ],
];

export function lazyRequires(...packages) {
  return {
    name: 'lazy-requires',
    setup: ({ onLoad }) =>
      onLoad({ filter: new RegExp(`/node_modules/(?:${packages.join('|')})/.*\\.js$`) }, ({ path }) => ({
        contents: lazy(quicker(path, readFileSync(path, 'utf8'))),
      })),
  };
}

function lazy(text) {
  const required = new Map([...text.matchAll(REQUIRE)].map(([, name, what]) => [name, what]));
  return text
    .replaceAll(REQUIRE, '')
    .replaceAll(/\b\w+_\d+\b/g, (name) => (required.has(name) ? `(${name}())` : name))
    .replace(/^(?:"use strict";)?/, (strict) =>
      [strict, ...[...required].map(([name, what]) => `function ${name}() { return ${what}; }`)].join('\n'),
    );
}

function quicker(path, text) {
  const [, slow, quick] = SLOW.find(([end]) => path.endsWith(end)) ?? [];
  if (slow === undefined) return text;
  if (!text.includes(slow)) throw new Error(`${path} is no longer as scripts/lazy-requires.mjs knows it`);
  return text.replace(slow, () => quick);
}
