import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What package.json says of this program, the only place that has its version. `root`: the directory of the file. */
export function ownPackage(root: string): { readonly version: string; readonly description: string } {
  const value: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const field = (name: string): string => {
    const text: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
    if (typeof text !== 'string')
      throw new TypeError(`${join(root, 'package.json')} has no ${name}: install gryphus again.`);
    return text;
  };
  return { version: field('version'), description: field('description') };
}
