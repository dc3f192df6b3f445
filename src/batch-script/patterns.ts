import { GryphusError } from '../errors.ts';
import type { System, Wishes } from './model.ts';

/** Macros of the description that a pattern's marks become. */
export interface Marks {
  /** The id that a job of an array has in common with the others. */
  readonly array: string;
  /** A job's own id, as its program sees it. */
  readonly job: string;
  /** The job's index; what the system writes for a job without one. */
  readonly index: string;
  /** The same as a number that may be formatted; `undefined`: the job has none. */
  readonly indexMacro?: string;
  readonly jobMacro: string;
  readonly name: string;
  readonly user: string;
  readonly home: string;
  /** Where the job goes, for the name of its node, which is known only when it runs. */
  readonly node: string;
}

/** Whether a pattern has the mark of the node's name. */
export function namesNode(system: System | undefined, pattern: string | undefined): boolean {
  if (system !== 'slurm' || pattern === undefined || pattern.includes('\\')) return false;
  return [...pattern.matchAll(/%\d*(.)/g)].some(([, mark]) => mark === 'N');
}

/** Whether each job's file has a name that no other's has. */
export function isNumbered(system: System | undefined, pattern: string, isArray: boolean): boolean {
  if (system !== 'slurm' || pattern.includes('\\')) return false;
  const marks = new Set([...pattern.matchAll(/%\d*(.)/g)].map(([, mark]) => mark));
  return marks.has('j') || marks.has('J') || (marks.has('A') && (!isArray || marks.has('a')));
}

/** A file name with a system's marks, as a value of the description. */
export function fileName(system: System | undefined, pattern: string, marks: Marks): string {
  switch (system) {
    case 'slurm':
      return slurmName(pattern, marks);
    case 'lsf':
      return pattern.replaceAll(/\$|%([%JI])/g, (whole, mark: string | undefined) =>
        whole === '$' ? '$(DOLLAR)' : mark === '%' ? '%' : mark === 'J' ? marks.array : marks.index,
      );
    case 'pbs':
      return shellName(pattern.replace(/^[\w.-]+:(?=\/)/, '').replaceAll('^array_index^', '${PBS_ARRAY_INDEX}'), {
        PBS_JOBID: marks.job,
        PBS_ARRAYID: marks.index,
        PBS_ARRAY_INDEX: marks.index,
        PBS_JOBNAME: marks.name,
        USER: marks.user,
        HOME: marks.home,
      });
    case 'sge':
      return shellName(pattern.replace(/^[\w.-]*:(?=.)/, ''), {
        JOB_ID: marks.array,
        TASK_ID: marks.index,
        SGE_TASK_ID: marks.index,
        JOB_NAME: marks.name,
        USER: marks.user,
        HOME: marks.home,
      });
    case undefined:
      return literal(pattern);
  }
}

function slurmName(pattern: string, marks: Marks): string {
  // A backslash switches the marks off.
  if (pattern.includes('\\')) return literal(pattern.replaceAll('\\', ''));
  return pattern.replaceAll(/\$|%(\d*)(.)/g, (whole, width: string | undefined, mark: string | undefined) => {
    if (whole === '$') return '$(DOLLAR)';
    const padded = (plain: string, macro: string | undefined) =>
      macro !== undefined && width ? `$INT(${macro},%0${Math.min(10, Number(width))}d)` : plain;
    switch (mark ?? '') {
      case '%':
        return '%';
      case 'A':
        return padded(marks.array, 'Cluster');
      case 'j':
      case 'J':
        return padded(marks.job, marks.jobMacro);
      case 'a':
        return padded(marks.index, marks.indexMacro);
      case 'b':
        return marks.indexMacro === undefined ? marks.index : `$INT(array_tenth)`;
      case 'x':
        return marks.name;
      case 'u':
        return marks.user;
      case 'n':
      case 't':
        return '0';
      case 's':
        return 'batch';
      case 'N':
        return marks.node;
      default:
        return whole;
    }
  });
}

function shellName(pattern: string, variables: Readonly<Record<string, string>>): string {
  return pattern
    .replace(/^~(?=\/|$)/, '${HOME}')
    .replaceAll(/\$(?:\{(\w+)\}|(\w+)|)/g, (whole, braced: string | undefined, bare: string | undefined) => {
      const name = braced ?? bare;
      const known = name === undefined ? undefined : variables[name];
      return known ?? `$(DOLLAR)${whole.slice(1)}`;
    });
}

/** What would end a line of the description. */
export const LINE_END = /[\n\r]/;

/**
 * A text in which nothing is a macro. `$$(…)` is not expanded when a job is made. Throws 'bad-input' if it has a line end.
 */
export function literal(text: string): string {
  if (LINE_END.test(text))
    throw new GryphusError(
      'bad-input',
      `A batch script's job cannot have a value with a line end: ${JSON.stringify(text)}.`,
    );
  return text.replaceAll(/(?<!\$)\$(?=\(|[A-Za-z_]\w*\()/g, '$(DOLLAR)');
}

/** Where output goes if the script does not say. */
export function defaultOutput(
  system: System | undefined,
  wishes: Wishes,
  marks: Marks,
): { readonly output: string; readonly error?: string } {
  const isArray = wishes.array !== undefined;
  const index = isArray ? `.${marks.index}` : '';
  if (system === 'slurm' || system === 'lsf') {
    return { output: isArray ? `${system}-$(Cluster)_${marks.index}.out` : `${system}-$(Cluster).out` };
  }
  return { output: `${marks.name}.o$(Cluster)${index}`, error: `${marks.name}.e$(Cluster)${index}` };
}
