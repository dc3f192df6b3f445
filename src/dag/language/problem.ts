import { GryphusError } from '../../errors.ts';
import { printable } from '../../util/plain-text.ts';

/** A place in a file: its name as the user gave it, and the line from 1 (0 means the file as a whole). */
export interface DagPlace {
  readonly file: string;
  readonly line: number;
}

/** One finding about a DAG. An `error` prevents the DAG from running, a `warning` does not. */
export interface Problem extends DagPlace {
  readonly severity: 'error' | 'warning';
  /** The DAG command it is about, such as `JOB`. */
  readonly command?: string;
  readonly message: string;
  /** What the reader can do about it. */
  readonly remedy?: string;
}

/** `x.dag:2 Failed to parse RETRY command: …`, the format in which condor_dag_checker reports. */
export function formatProblem(problem: Problem): string {
  const { command } = problem;
  const message = printable(problem.message);
  return `${whereOf(problem)} ${command === undefined ? message : `Failed to parse ${command} command: ${message}`}`;
}

/** `x.dag:2`, or `x.dag` for the file as a whole. */
export function whereOf({ file, line }: DagPlace): string {
  return line === 0 ? printable(file) : `${printable(file)}:${line}`;
}

/** Sorts by file, in the order in which files were first named, and by line. */
export function inOrder(problems: readonly Problem[]): readonly Problem[] {
  const files = [...new Set(problems.map(({ file }) => file))];
  return [...problems].sort((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line);
}

/** The refusal of a DAG that has `problems`: its message has an error in each line, its suggestions are the fixes. */
export function refusal(problems: readonly Problem[]): GryphusError {
  const errors = problems.filter((problem) => problem.severity === 'error');
  const shown = errors.length > 0 ? errors : problems;
  if (shown.length === 0) return new GryphusError('internal', 'A DAG without problems was refused.');
  const suggestions = [...new Set(shown.flatMap(({ remedy }) => remedy ?? []))];
  return new GryphusError('dag-refused', shown.map(formatProblem).join('\n'), { suggestions });
}

/** Thrown by the parser and caught at the line that it concerns. */
export class Complaint extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}
