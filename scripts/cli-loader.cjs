'use strict';
// Runs the bundled command line from V8's code cache: compiling it would take longer than most commands do. The cache beside the
// bundle is the build's; V8 refuses that of another Node. Then, and in an installed package, which has none, the first
// command leaves one in the user's cache directory.
const { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const { Script } = require('node:vm');

const UNUSED_MS = 30 * 86_400_000;

const file = path.join(__dirname, 'bundle.js');
const source = Module.wrap(readFileSync(file, 'latin1'));
const built = path.join(__dirname, 'bundle.cache');
let script = compile(built);
if (script.cachedDataRejected !== false) {
  const own = ownCache();
  script = compile(own);
  if (script.cachedDataRejected !== false) process.once('exit', () => keepQuietly(own));
}
const bundle = new Module(file, module);
bundle.filename = file;
script.runInThisContext().call(bundle.exports, bundle.exports, Module.createRequire(file), bundle, file, __dirname);
module.exports = {
  ...bundle.exports,
  /** Saves what has been compiled so far, for the next start. */
  keep: () => writeFileSync(built, script.createCachedData()),
};

/** The bundle, with this cache if it is there: `cachedDataRejected` is false if it was used. */
function compile(cache) {
  let cachedData;
  try {
    cachedData = readFileSync(cache);
  } catch {
    cachedData = undefined;
  }
  return new Script(source, { filename: file, cachedData });
}

/** Where the user's cache of this bundle and this Node is. */
function ownCache() {
  const { mtimeMs, size } = statSync(file);
  const which = require('node:crypto')
    .createHash('sha256')
    .update(`${file} ${mtimeMs} ${size} ${process.version} ${process.arch}`)
    .digest('hex');
  const base = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache');
  return path.join(base, 'gryphus/code', `${which.slice(0, 32)}.cache`);
}

/** Where it cannot be written, commands only start more slowly. */
function keepQuietly(cache) {
  try {
    const dir = path.dirname(cache);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const fresh = `${cache}.${process.pid}`;
    writeFileSync(fresh, script.createCachedData(), { mode: 0o600 });
    renameSync(fresh, cache);
    for (const name of readdirSync(dir)) {
      const one = path.join(dir, name);
      if (Date.now() - statSync(one).mtimeMs > UNUSED_MS) rmSync(one);
    }
  } catch {
    return;
  }
}
