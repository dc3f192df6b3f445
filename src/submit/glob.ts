import { byBytes } from './text.ts';
import type { SubmitWorld } from './world.ts';

const MAGIC = /[*?[\]\\]/;

/** Whether a shell pattern contains special characters. */
export function hasMagic(pattern: string): boolean {
  return MAGIC.test(pattern);
}

function literal(char: string): string {
  return char.replace(/[\\^$.*+?()[\]{}|/]/, '\\$&');
}

/** Converts a shell pattern for one path component to a regular expression (POSIX.1-2017, XCU 2.13). */
function componentPattern(glob: string): RegExp {
  let source = glob.startsWith('.') ? '' : '(?!\\.)';
  for (let at = 0; at < glob.length; at++) {
    const char = glob.charAt(at);
    const set = char === '[' ? /^\[([!^]?)(\]?[^\]]*)\]/.exec(glob.slice(at)) : null;
    if (set) {
      const members = (set[2] ?? '').replace(/[\\\]^]/g, '\\$&');
      source += `[${set[1] ? '^' : ''}${members}]`;
      at += set[0].length - 1;
    } else if (char === '*') source += '.*';
    else if (char === '?') source += '.';
    else if (char === '\\' && at + 1 < glob.length) source += literal(glob.charAt(++at));
    else source += literal(char);
  }
  return compiled(source);
}

function compiled(source: string): RegExp {
  try {
    return new RegExp(`^${source}$`, 'su');
  } catch {
    return /^(?!)/;
  }
}

function join(directory: string, name: string): string {
  return directory === '' || directory.endsWith('/') ? directory + name : `${directory}/${name}`;
}

/**
 * The files and directories that match a shell pattern, in byte order, directories with a trailing slash. Hidden names
 * only match a pattern that begins with a dot. Relative patterns start from `cwd` and give relative names.
 */
export function glob(pattern: string, cwd: string, world: SubmitWorld): string[] {
  const absolute = pattern.startsWith('/');
  const parts = pattern.split('/').filter((part) => part !== '');
  const onlyDirectories = pattern.endsWith('/');
  let found = [absolute ? '/' : ''];
  for (const part of parts) {
    const next: string[] = [];
    const matcher = MAGIC.test(part) ? componentPattern(part) : undefined;
    for (const directory of found) {
      const at = directory.startsWith('/') ? directory : join(cwd, directory);
      if (!matcher) {
        if (world.look(join(at, part))) next.push(join(directory, part));
        continue;
      }
      for (const entry of world.list(at)) if (matcher.test(entry.name)) next.push(join(directory, entry.name));
    }
    found = next;
  }
  return found
    .filter((name) => name !== '')
    .map((name) =>
      world.look(name.startsWith('/') ? name : join(cwd, name))?.directory ? `${name.replace(/\/$/, '')}/` : name,
    )
    .filter((name) => !onlyDirectories || name.endsWith('/'))
    .sort(byBytes);
}
