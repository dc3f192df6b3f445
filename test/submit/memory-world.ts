import type { WorldResult, SubmitWorld } from '../../src/submit/api.ts';

export interface MemoryFiles {
  /** Contents by absolute path. */
  readonly files: Record<string, string>;
  readonly directories?: readonly string[];
  readonly environment?: Record<string, string>;
  /** What a program prints, by its argv joined by blanks. */
  readonly run?: (argv: readonly string[]) => { readonly stdout: string; readonly status: number } | undefined;
  readonly stdin?: string;
}

const MISSING = { ok: false, reason: 'No such file or directory' } as const;

/** Submit's world without a disk. */
export function memoryWorld({ files, directories = [], environment = {}, run, stdin = '' }: MemoryFiles): SubmitWorld {
  const paths = (): string[] => [...Object.keys(files), ...directories];
  const isDirectory = (path: string): boolean => {
    return directories.includes(path) || paths().some((other) => other.startsWith(`${path.replace(/\/$/, '')}/`));
  };
  const size = (path: string): number => Buffer.byteLength(files[path] ?? '');
  const clean = (path: string): string => {
    const parts: string[] = [];
    for (const part of path.split('/')) {
      if (part === '..') parts.pop();
      else if (part !== '' && part !== '.') parts.push(part);
    }
    return `/${parts.join('/')}`;
  };
  return {
    readText(path): WorldResult<string> {
      const text = files[clean(path)];
      return text === undefined ? MISSING : { ok: true, value: text };
    },
    writeText(path, text) {
      files[clean(path)] = text;
      return { ok: true, value: undefined };
    },
    run(argv) {
      const result = run?.(argv);
      return result === undefined ? MISSING : { ok: true, value: result };
    },
    stdin: () => ({ ok: true, value: stdin }),
    look(path) {
      const at = clean(path);
      if (files[at] !== undefined) return { directory: false, bytes: size(at), readable: true };
      return isDirectory(at) ? { directory: true, bytes: 0, readable: true } : undefined;
    },
    treeBytes: (path) => {
      const below = Object.keys(files).filter((file) => file.startsWith(`${clean(path)}/`));
      return below.reduce((sum, file) => sum + size(file), 0);
    },
    list(path) {
      const at = clean(path).replace(/\/$/, '');
      const names = paths().flatMap((other) =>
        other.startsWith(`${at}/`) ? [other.slice(at.length + 1).split('/')[0] ?? ''] : [],
      );
      return [...new Set(names)].map((name) => ({ name, directory: isDirectory(`${at}/${name}`) }));
    },
    head: (path, bytes) => (files[clean(path)] ?? '').slice(0, bytes),
    environment,
    uid: 1000,
    random: () => 0.5,
  };
}
