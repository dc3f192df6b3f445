const BEFORE = '$$(GryphusDirectory:';

/**
 * The value of a variable in a job's environment that names `path` where the job has this machine's files, and
 * otherwise the directory in which it starts. The wrapper and the pool's workers replace it.
 */
export function orStartDirectory(path: string): string {
  return `${BEFORE}${path})`;
}

/** The path in such a value; `undefined` for any other. */
export function pathOrStart(value: string): string | undefined {
  return value.startsWith(BEFORE) && value.endsWith(')') ? value.slice(BEFORE.length, -1) : undefined;
}
