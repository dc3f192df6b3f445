/** What a submit description can ask of the machine where it is submitted. Paths are absolute. */
export interface SubmitWorld {
  /** The text of a file, or why it cannot be read ("No such file or directory"). */
  readText(path: string): WorldResult<string>;
  /** Saves the output for `include command into FILE`. */
  writeText(path: string, text: string): WorldResult<void>;
  /** Runs a program (argv[0] is searched in PATH) in `cwd`; returns its standard output and exit status. */
  run(argv: readonly string[], cwd: string): WorldResult<{ readonly stdout: string; readonly status: number }>;
  stdin(): WorldResult<string>;
  /** `undefined` if there is nothing, or it cannot be reached. */
  look(path: string): FileFacts | undefined;
  /** The names in a directory without `.` and `..`; empty if it is not a directory. */
  list(path: string): readonly { readonly name: string; readonly directory: boolean }[];
  /** The total bytes of all files below a directory. */
  treeBytes(path: string): number;
  /** The first `bytes` bytes of a file, as Latin-1. */
  head(path: string, bytes: number): string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user's id, which is part of the default path of a proxy. */
  readonly uid: number;
  /** From 0 up to but excluding 1. */
  random(): number;
}

export type WorldResult<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

export interface FileFacts {
  readonly directory: boolean;
  /** For a file. */
  readonly bytes: number;
  readonly readable: boolean;
}
