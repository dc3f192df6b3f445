// Redis and Valkey of other releases of Debian for the tests, with the libraries that each needs.
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePlace, placeOf, startsWith } from './other-debian.mjs';

const LIBRARIES =
  'libatomic1 libc6 libcap2 libgcc-s1 libgcrypt20 libgpg-error0 libjemalloc2 liblz4-1 liblzf1 liblzma5 libstdc++6 libsystemd0 libzstd1'.split(
    ' ',
  );
/** The server's program is that of `redis-check-rdb`, which is in the package of the tools. */
const KINDS = {
  'redis-6': {
    release: 'bullseye',
    packages: ['redis-tools', 'liblua5.1-0', 'libssl1.1', 'lua-bitop', 'lua-cjson'],
    program: 'redis-check-rdb',
    server: 'redis-server',
  },
  'redis-8': {
    release: 'trixie',
    packages: ['redis-tools', 'libssl3t64', 'zlib1g'],
    program: 'redis-check-rdb',
    server: 'redis-server',
  },
  'valkey-8': {
    release: 'trixie',
    packages: ['valkey-tools', 'libssl3t64', 'zlib1g'],
    program: 'valkey-check-rdb',
    server: 'valkey-server',
  },
};

/** The server's program; `undefined`, with a message, if it is not available. */
export function needRedis(kind) {
  const { release, packages, program, server } = KINDS[kind];
  const place = placeOf(kind);
  const isThere = makePlace(place, kind, release, [...packages, ...LIBRARIES], (unpacked, ours) => {
    for (const name of ['lib', 'usr/lib']) {
      const from = join(unpacked, name);
      if (existsSync(from)) renameSync(from, join(ours, name.replace('/', '-')));
    }
    renameSync(join(unpacked, 'usr/bin', program), join(ours, server));
    linked(ours, place, server);
    if (release === 'bullseye') withLua(ours, place, server);
  });
  return isThere ? join(place, server) : undefined;
}

/** The program starts with the loader and the libraries that will be beside it. */
function linked(ours, place, server) {
  const found = readdirSync(ours, { recursive: true, encoding: 'utf8' });
  const loader = found.find((name) => /\/ld-linux[^/]*\.so\.\d+$/.test(name));
  if (loader === undefined) throw new Error('there is no loader among its libraries');
  const dirs = new Set(found.filter((name) => /\.so\.\d/.test(name)).map((name) => join(place, name, '..')));
  startsWith(join(ours, server), join(place, loader), [...dirs]);
}

/** It loads a part of its Lua at run time, from where Debian's own stands. */
function withLua(ours, place, server) {
  const found = readdirSync(ours, { recursive: true, encoding: 'utf8' });
  const module = found.find((name) => name.endsWith('/lua/5.1/cjson.so'));
  if (module === undefined) throw new Error('there is no lua/5.1/cjson.so in its libraries');
  renameSync(join(ours, server), join(ours, `${server}.bin`));
  const script = `#!/bin/sh\nLUA_CPATH='${join(place, module, '..')}/?.so' exec '${join(place, server)}.bin' "$@"\n`;
  writeFileSync(join(ours, server), script, { mode: 0o755 });
}
