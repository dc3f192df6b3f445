/** Where DAG files are read from. Paths are as in the DAG, relative to the DAG manager's directory. */
export interface DagSource {
  /** The file's text; `undefined` where it is not there or cannot be read. */
  read(path: string): string | undefined;
  /** The one name of the file, by which a file that includes itself is found. */
  absolute(path: string): string;
}
