/**
 * The canonical form of a name in a job's directory: without `.`, doubled or trailing slashes, and with `..` resolved.
 * `''` is the directory itself; `undefined` means that the name leads out of it.
 */
export function plainName(name: string): string | undefined {
  if (name.startsWith('/') || name.includes('\0')) return undefined;
  const parts: string[] = [];
  for (const part of name.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.join('/');
}
