/** Where DAG files are read from. Paths are as in the DAG, relative to the DAG manager's directory. */
export interface DagSource {
  /** The file's text; `undefined` if it is missing or unreadable. */
  read(path: string): string | undefined;
  /** The file's canonical name, by which a file that includes itself is detected. */
  absolute(path: string): string;
}
