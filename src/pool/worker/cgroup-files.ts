import { readFileSync, writeFileSync } from 'node:fs';

/** `undefined` if the file cannot be read. */
export function text(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

/** False if the control file does not exist or may not be written. */
export function put(path: string, value: string): boolean {
  try {
    writeFileSync(path, value);
    return true;
  } catch {
    return false;
  }
}
