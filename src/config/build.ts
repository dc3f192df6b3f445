import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Build } from '../util/daemon.ts';
import { ownPackage } from '../util/own-package.ts';

/** Read once when the process starts: another build may replace it on disk. */
export function ownBuild(): Build {
  const root = new URL('../../', import.meta.url);
  const path = fileURLToPath(root).replace(/\/$/, '');
  return { version: ownPackage(path).version, path, built: stamp(new URL('../.built', import.meta.url)) };
}

function stamp(file: URL): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}
