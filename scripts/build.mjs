// Compiles src/ to dist/ and carries along what is not TypeScript: the site's shell programs and the queue's Lua. The new
// dist/ takes the old one's place only when it is whole.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
const fresh = join(root, `dist.${process.pid}.new`);
const old = join(root, `dist.${process.pid}.old`);
const ASSETS = ['.sh', '.lua', '.awk', '.py'];

try {
  const tsc = spawnSync(join(root, 'node_modules/.bin/tsc'), ['-p', join(root, 'tsconfig.json'), '--outDir', fresh], {
    stdio: 'inherit',
  });
  if (tsc.status !== 0) process.exit(tsc.status ?? 1);

  for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!ASSETS.some((ending) => file.endsWith(ending))) continue;
    const target = join(fresh, file);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(root, 'src', file), target);
  }
  const bin = join(fresh, 'bin/gryphus.js');
  if (existsSync(bin)) chmodSync(bin, 0o755);
  writeFileSync(join(fresh, '.built'), '');

  if (existsSync(dist)) renameSync(dist, old);
  renameSync(fresh, dist);
} finally {
  rmSync(old, { recursive: true, force: true });
  rmSync(fresh, { recursive: true, force: true });
}
