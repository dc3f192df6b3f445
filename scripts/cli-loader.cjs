'use strict';
// Runs the bundled command line from V8's code cache: compiling it would take longer than most commands. V8 refuses the
// cache of another Node, and the bundle is compiled as usual.
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { Script } = require('node:vm');

const file = path.join(__dirname, 'bundle.js');
const cache = path.join(__dirname, 'bundle.cache');
const script = new Script(Module.wrap(readFileSync(file, 'latin1')), {
  filename: file,
  ...(existsSync(cache) ? { cachedData: readFileSync(cache) } : {}),
});
const bundle = new Module(file, module);
bundle.filename = file;
script.runInThisContext().call(bundle.exports, bundle.exports, Module.createRequire(file), bundle, file, __dirname);
module.exports = {
  ...bundle.exports,
  /** Saves what has been compiled so far, for the next start. */
  keep: () => writeFileSync(cache, script.createCachedData()),
};
