/** Paths in a DAG are POSIX paths; these are the few operations that the language needs. */

export function isAbsolute(path: string): boolean {
  return path.startsWith('/');
}

/** `file` relative to `dir`; an empty `dir` or `.` is the directory of the DAG manager itself. */
export function inDirectory(dir: string, file: string): string {
  if (dir === '' || dir === '.' || isAbsolute(file)) return file;
  return dir.endsWith('/') ? dir + file : `${dir}/${file}`;
}

/** The directory part of `path`; `.` if it has none. */
export function directoryOf(path: string): string {
  const slash = path.lastIndexOf('/');
  if (slash < 0) return '.';
  return slash === 0 ? '/' : path.slice(0, slash);
}

export function fileNameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
