/** What a submit description may ask of the machine that it is submitted on. Paths are absolute. */
export interface SubmitWorld {
  /** The text of a file, or why it cannot be read ("No such file or directory"). */
  readText(path: string): Outcome<string>;
  /** Saves what `include command into FILE` got. */
  writeText(path: string, text: string): Outcome<void>;
  /** Runs a program (argv[0] is looked for in PATH) in `cwd`; its standard output and exit status. */
  run(argv: readonly string[], cwd: string): Outcome<{ readonly stdout: string; readonly status: number }>;
  stdin(): Outcome<string>;
  /** `undefined` where there is nothing, or it cannot be reached. */
  look(path: string): FileFacts | undefined;
  /** The names in a directory, without `.` and `..`; empty when it is none. */
  list(path: string): readonly { readonly name: string; readonly directory: boolean }[];
  /** The bytes of all files below a directory. */
  treeBytes(path: string): number;
  /** The first bytes of a file as Latin-1, at most `bytes`. */
  head(path: string, bytes: number): string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user's number: where a proxy is by default. */
  readonly uid: number;
  /** From 0 up to and without 1. */
  random(): number;
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

export interface FileFacts {
  readonly directory: boolean;
  /** Of a file. */
  readonly bytes: number;
  readonly readable: boolean;
}
