import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLI } from '../agent/agent.ts';

const DIST = dirname(dirname(CLI));
/** The module in an import, an export, an import(), a require() or the call of a require made for a place. */
const SPECIFIER =
  /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\(|\bcreateRequire\([^)]*\)\()\s*(["'])([@\w][\w@./-]*)\1/g;
/** Loaded where somebody has installed them, and never needed. */
const OPTIONAL = new Set([
  '@valkey/valkey-glide',
  'cpu-features',
  'msgpackr-extract',
  'ssh2/lib/protocol/crypto/build/Release/sshcrypto.node',
]);

describe('the built program', () => {
  it('needs no package: an installation has none', () => {
    const needed: string[] = [];
    let count = 0;
    for (const name of readdirSync(DIST, { recursive: true, encoding: 'utf8' })) {
      // The page is for a browser; the commands' own modules are only in bundles when installed.
      if (!/\.[mc]?js$/.test(name) || /^(web-page|commands)\//.test(name)) continue;
      count += 1;
      for (const [, , specifier = ''] of readFileSync(join(DIST, name), 'utf8').matchAll(SPECIFIER))
        if (!isBuiltin(specifier) && !OPTIONAL.has(specifier)) needed.push(`${name}: ${specifier}`);
    }
    expect(count).toBeGreaterThan(300);
    expect(needed).toEqual([]);
  });
});
