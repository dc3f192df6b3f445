// Compiles src/ to dist/ and carries along what is not TypeScript: the site's shell programs and the queue's Lua.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const ASSETS = ['.sh', '.lua', '.awk'];

rmSync(join(root, 'dist'), { recursive: true, force: true });
const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', join(root, 'tsconfig.json')], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(tsc.status ?? 1);

for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
  if (!ASSETS.some((ending) => file.endsWith(ending))) continue;
  const target = join(root, 'dist', file);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(root, 'src', file), target);
}
const bin = join(root, 'dist/bin/gryphus.js');
if (existsSync(bin)) chmodSync(bin, 0o755);
