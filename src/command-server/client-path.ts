import { accessSync, constants } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The client of the command server; `undefined` where the build could not make it. */
export function clientPath(): string | undefined {
  const path = fileURLToPath(new URL(`../native/${process.arch}/gryphus-client`, import.meta.url));
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}
