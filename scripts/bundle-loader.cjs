'use strict';
// Runs a bundle, of the command line or of the daemons, from V8's code cache: compiling it would take longer than most commands do.
// The cache beside the bundle is the build's. Without it, as in an installed package, or with another Node, the first process leaves
// one in the user's cache directory. A cache is code that V8 does not check, so only one that nobody else could write is used.
const fs = require('node:fs');
const Module = require('node:module');
const { homedir } = require('node:os');
const path = require('node:path');
const { Script } = require('node:vm');
const { crc32 } = require('node:zlib');

const UNUSED_MS = 30 * 86_400_000;
const OTHERS_WRITE = 0o022;
/** V8 drops what it has compiled when it was not used for long, so a daemon's is kept soon after its start. */
const STARTED_MS = 10_000;

let isKept = false;
const file = path.join(__dirname, 'bundle.js');
const text = fs.readFileSync(file, 'latin1');
const node = `${process.version}-${process.arch}`;
/** A bundle with several programs has a copy of this loader, and a cache, for each. */
const loader = path.basename(__filename, path.extname(__filename));
const built = path.join(__dirname, `${loader}-${node}.cache`);
const builds = read(built);
const own = builds === undefined ? ownCache() : undefined;
// V8 remembers a source that it has compiled, and then ignores its cache: there is one try.
const script = new Script(Module.wrap(text), { filename: file, cachedData: builds ?? (own && readOwn(own)) });
if (own !== undefined && script.cachedDataRejected !== false) {
  process.once('exit', () => keepQuietly(own));
  setTimeout(() => keepQuietly(own), STARTED_MS).unref();
}
const bundle = new Module(file, module);
bundle.filename = file;
script.runInThisContext().call(bundle.exports, bundle.exports, Module.createRequire(file), bundle, file, __dirname);
module.exports = {
  ...bundle.exports,
  /** Saves what has been compiled so far, for the next start. */
  keep: () => fs.writeFileSync(built, script.createCachedData()),
};

function read(cache) {
  try {
    return fs.readFileSync(cache);
  } catch {
    return undefined;
  }
}

/** Of the user's cache directory: a link, or what another user may have written, does not count. */
function readOwn(cache) {
  let fd;
  try {
    if (!isOurs(fs.statSync(path.dirname(cache)))) return undefined;
    fd = fs.openSync(cache, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
    const found = fs.fstatSync(fd);
    return found.isFile() && isOurs(found) ? unsealed(fs.readFileSync(fd)) : undefined;
  } catch {
    return undefined;
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

/** V8 crashes at a cache that a full disk or a power cut has damaged, so a checksum is at its end. */
function unsealed(bytes) {
  const end = bytes.length - 4;
  const data = bytes.subarray(0, Math.max(0, end));
  return end > 0 && bytes.readUInt32LE(end) === crc32(data) ? data : undefined;
}

function sealed(data) {
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(data));
  return Buffer.concat([data, sum]);
}

function isOurs({ uid, mode }) {
  return uid === process.geteuid?.() && (mode & OTHERS_WRITE) === 0;
}

/**
 * Where the user's cache of this bundle and this Node is. V8 compares no more of the source than its length, and an
 * installer gives all files the same time, so the name has the bundle's hash, with which the build ends the file. A bundle's programs have one each.
 */
function ownCache() {
  const given = process.env.XDG_CACHE_HOME;
  const base = given && path.isAbsolute(given) ? given : path.join(home(), '.cache');
  return path.isAbsolute(base) ? path.join(base, 'gryphus/code', `${text.slice(-32)}-${loader}-${node}.cache`) : undefined;
}

/** '' if there is none: HOME is not set, and the system does not know the user. */
function home() {
  try {
    return homedir();
  } catch {
    return '';
  }
}

/** Where it cannot be written, commands only start more slowly. Root leaves nothing in the home of another user. */
function keepQuietly(cache) {
  if (isKept) return;
  isKept = true;
  const dir = path.dirname(cache);
  const fresh = `${cache}.${process.pid}.${Date.now()}`;
  try {
    let there = dir;
    while (!fs.existsSync(there)) there = path.dirname(there);
    if (!isOurs(fs.statSync(there))) return;
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 });
    fs.writeFileSync(fresh, sealed(script.createCachedData()), { mode: 0o600, flag: 'wx' });
    fs.renameSync(fresh, cache);
    for (const name of fs.readdirSync(dir)) {
      const one = path.join(dir, name);
      if (Date.now() - fs.statSync(one).mtimeMs > UNUSED_MS) fs.rmSync(one);
    }
  } catch {
    fs.rmSync(fresh, { force: true });
  }
}
