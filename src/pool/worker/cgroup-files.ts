import { readFileSync, writeFileSync } from 'node:fs';

/** `undefined` where it cannot be read. */
export function text(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** False where there is no such control, or it may not be used. */
export function put(path: string, value: string): boolean {
  try {
    writeFileSync(path, value);
    return true;
  } catch {
    return false;
  }
}
